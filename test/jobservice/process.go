package jobservice

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// variable is the environment variable that makes a program run as the service.
const variable = "GODWIT_JOBSERVICE"

// Main runs the service if [Start] started this process, and then it does not return. The main function of each program that
// calls Start calls Main first.
func Main() {
	if os.Getenv(variable) == "" {
		return
	}
	err := serve()
	fmt.Fprintln(os.Stderr, "jobservice:", err)
	os.Exit(1) //nolint:forbidigo // This is the main function of another process.
}

// serve returns when its standard input ends, so that the service ends with the process that started it.
func serve() error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0") //nolint:forbidigo // This is the main function of another process.
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stdout, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	server := &http.Server{Handler: New(), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	return server.Serve(listener)
}

// Process is a running service.
type Process struct {
	// URL is the address of the service.
	URL string

	command *exec.Cmd
	input   io.Closer
}

// Start starts this program again as the service.
func Start(ctx context.Context) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the job service: %w", err)
	}
	return StartProgram(ctx, program)
}

// StartProgram starts another program that calls [Main] as the service.
func StartProgram(ctx context.Context, program string) (*Process, error) {
	command := exec.CommandContext(context.WithoutCancel(ctx), program)
	command.Env = append(os.Environ(), variable+"=1")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the job service: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the job service: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the job service: %w", err)
	}
	p := &Process{command: command, input: input}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the job service: it prints no address: %w (does the program call jobservice.Main?)", err), p.Stop())
	}
	p.URL = strings.TrimSpace(line)
	return p, nil
}

// Stop kills the service, which keeps no data. A signal from the terminal may have ended it before.
func (p *Process) Stop() error {
	err := p.command.Process.Signal(syscall.SIGKILL)
	_ = p.input.Close()
	_ = p.command.Wait() // It was killed.
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Control sets how the service behaves.
func (p *Process) Control(ctx context.Context, c Control) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, p.URL+"/control", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return p.do(request, nil)
}

// Requests returns how many requests have arrived, by pattern.
func (p *Process) Requests(ctx context.Context) (map[string]int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/requests", nil)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	return counts, p.do(request, &counts)
}

func (p *Process) do(request *http.Request, into any) error {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", request.Method, request.URL.Path, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}
