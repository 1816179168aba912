package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/godwit-dev/godwit/test/machine"
)

const (
	// serverBridge is the network of API servers.
	serverBridge = "godwit"
	// serverAddress is that of the API server of an only cluster, and of the machine in the network of API servers, which no node has.
	serverAddress = "10.243.0.1"
	// mostClusters share a machine: each has 16 networks for its nodes.
	mostClusters = 15
	// blackhole is the type of a route that drops packets (RTN_BLACKHOLE in rtnetlink(7)).
	blackhole = 6
)

// addresses are the names and addresses of a cluster, none of which another cluster of the machine has.
type addresses struct {
	// name is empty for an only cluster.
	name string
	// server is the address of the API server.
	server string
	// uplink is the address of the nodes of a cluster with a name in the network of API servers.
	uplink string
	// pods is the network of the pods of all nodes. Each node has a network with 256 addresses of it, from the first on.
	pods  string
	first int
	// proxyHealth is where kube-proxy says that it has written its rules.
	proxyHealth string
}

// addressesOf returns the addresses of a cluster. The number of one with a name counts from 1.
func addressesOf(name string, number int) addresses {
	if name == "" {
		return addresses{server: serverAddress, pods: "10.244.0.0/16", proxyHealth: "127.0.0.1:10256"}
	}
	uplink := fmt.Sprintf("10.243.0.%d", 100+number)
	return addresses{
		name: name, server: fmt.Sprintf("10.243.0.%d", 1+number), uplink: uplink, proxyHealth: uplink + ":10256",
		pods: fmt.Sprintf("10.244.%d.0/20", 16*number), first: 16 * number,
	}
}

// nodeName is unique on the machine.
func (a addresses) nodeName(name string) string {
	if a.name == "" {
		return name
	}
	return a.name + "-" + name
}

// neighbors are the names of the clusters that share this machine.
var neighbors struct {
	sync.Mutex
	names []string
}

// chooseAddresses gives a cluster its addresses. A cluster with a name gets the next number.
func chooseAddresses(name string) (addresses, error) {
	if name == "" {
		return addressesOf("", 0), nil
	}
	neighbors.Lock()
	defer neighbors.Unlock()
	if len(neighbors.names) == mostClusters {
		return addresses{}, fmt.Errorf("start cluster %s: the machine has %d clusters, which is the most", name, mostClusters)
	}
	neighbors.names = append(neighbors.names, name)
	return addressesOf(name, len(neighbors.names)), nil
}

// addServerBridge adds the network of API servers to the machine, whose clusters share it, also one after the other.
var addServerBridge = sync.OnceValue(func() error { return addBridge(&netlink.Handle{}, serverBridge, serverAddress+"/24") })

// network is the one of the nodes of a cluster: that of the machine, or a namespace of its own.
type network struct {
	links *netlink.Handle
	// own is the namespace, or closed for that of the machine.
	own netns.NsHandle
}

// openNetwork returns the network of the nodes of a cluster, from which the API server is reached.
func openNetwork(a addresses) (*network, error) {
	if err := addServerBridge(); err != nil {
		return nil, err
	}
	if a.name == "" {
		n := &network{links: &netlink.Handle{}, own: netns.None()}
		return n, n.routeToServers()
	}
	n := &network{own: netns.None()}
	err := onThread(func() error {
		before, err := netns.Get()
		if err != nil {
			return err
		}
		defer func() { _ = before.Close() }()
		if n.own, err = netns.New(); err != nil { // the thread is in it
			return err
		}
		return netns.Set(before)
	})
	if err == nil {
		n.links, err = netlink.NewHandleAt(n.own)
	}
	if err == nil {
		err = n.connect(a)
	}
	if err != nil {
		return nil, fmt.Errorf("make the network of cluster %s: %w", a.name, errors.Join(err, n.close()))
	}
	return n, nil
}

// connect links a namespace with the network of API servers. Packets of pods keep their addresses there, to which a route leads back.
func (n *network) connect(a addresses) error {
	bridge, err := netlink.LinkByName(serverBridge)
	if err != nil {
		return err
	}
	server, err := netlink.ParseAddr(a.server + "/24")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(bridge, server); err != nil {
		return fmt.Errorf("add address %s: %w", a.server, err)
	}
	cable := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "to-" + a.name, MasterIndex: bridge.Attrs().Index}, PeerName: "uplink", PeerNamespace: netlink.NsFd(n.own),
	}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("add interface %s: %w", cable.Name, err)
	}
	if err := netlink.LinkSetUp(cable); err != nil {
		return err
	}
	if err := n.up("lo", ""); err != nil {
		return err
	}
	if err := n.up("uplink", a.uplink+"/24"); err != nil {
		return err
	}
	gateway := net.ParseIP(serverAddress)
	everything := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := n.links.RouteAdd(&netlink.Route{Dst: everything, Gw: gateway}); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	_, pods, err := net.ParseCIDR(a.pods)
	if err != nil {
		return err
	}
	if err := netlink.RouteAdd(&netlink.Route{Dst: pods, Gw: net.ParseIP(a.uplink)}); err != nil {
		return fmt.Errorf("add the route to %s: %w", pods, err)
	}
	return nil
}

// up sets an interface of the network up.
func (n *network) up(name, address string) error {
	link, err := n.links.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	return setUp(n.links, link, address)
}

// setUp sets an interface up, with an address if there is one.
func setUp(links *netlink.Handle, link netlink.Link, address string) error {
	if address != "" {
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := links.AddrAdd(link, parsed); err != nil {
			return fmt.Errorf("add address %s: %w", address, err)
		}
	}
	return links.LinkSetUp(link)
}

// set changes settings of the kernel that each network has.
func (n *network) set(value string, settings ...string) error {
	return onThread(func() error {
		if n.own.IsOpen() {
			before, err := netns.Get()
			if err != nil {
				return err
			}
			defer func() { _ = before.Close() }()
			if err := netns.Set(n.own); err != nil {
				return err
			}
			defer func() { _ = netns.Set(before) }() // the thread ends
		}
		for _, setting := range settings {
			if err := os.WriteFile("/proc/sys/"+setting, []byte(value), 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// enter makes a command run in the network.
func (n *network) enter(command *exec.Cmd) (*exec.Cmd, error) {
	if !n.own.IsOpen() {
		return command, nil
	}
	program, err := exec.LookPath("nsenter")
	if err != nil {
		return nil, fmt.Errorf("run %s in the network of a cluster: %w: install util-linux", filepath.Base(command.Path), err)
	}
	// nsenter becomes the program, which so has its process ID, and ends with this process.
	command.Args = append([]string{program, fmt.Sprintf("--net=/proc/%d/fd/%d", os.Getpid(), int(n.own)), command.Path}, command.Args[1:]...)
	command.Path = program
	return command, nil
}

// close lets go of a namespace, which ends with its processes.
func (n *network) close() error {
	if n.links != nil {
		n.links.Close()
	}
	if !n.own.IsOpen() {
		return nil
	}
	return n.own.Close()
}

// onThread runs f on a thread that nothing else uses, and that ends with f, so that a namespace which f enters is left.
func onThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good
		result <- f()
	}()
	return <-result
}

// CutOff drops all packets from nodes and pods of a cluster with a name to an address, as a firewall does, until Reconnect.
func (c *Cluster) CutOff(address string) error { return c.route(address, c.network.links.RouteAdd) }

// Reconnect ends what CutOff has begun.
func (c *Cluster) Reconnect(address string) error { return c.route(address, c.network.links.RouteDel) }

func (c *Cluster) route(address string, change func(*netlink.Route) error) error {
	ip := net.ParseIP(address)
	if c.addresses.name == "" || ip == nil {
		return fmt.Errorf("cut the cluster off from %q: it needs an address, and a cluster with a name", address)
	}
	if err := change(&netlink.Route{Dst: &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)}, Type: blackhole}); err != nil {
		return fmt.Errorf("change the route of cluster %s to %s: %w", c.addresses.name, address, err)
	}
	return nil
}

// routeToServers adds a default route to the network of API servers, so that addresses of Services are not unreachable before a rule of
// kube-proxy changes them.
func (n *network) routeToServers() error {
	bridge, err := n.links.LinkByName(serverBridge)
	if err != nil {
		return err
	}
	everything := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := n.links.RouteAdd(&netlink.Route{LinkIndex: bridge.Attrs().Index, Dst: everything}); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	return nil
}

// addBridge adds a network to the machine, or to the network of a cluster.
func addBridge(links *netlink.Handle, name, address string) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}
	if err := links.LinkAdd(bridge); err != nil {
		return fmt.Errorf("add bridge %s: %w", name, err)
	}
	if err := setUp(links, bridge, address); err != nil {
		return fmt.Errorf("set bridge %s up: %w", name, err)
	}
	return nil
}

// makeFolder makes the folder of a cluster.
func (a addresses) makeFolder() (string, error) {
	folder := filepath.Join(machine.Folder(), a.name)
	if err := os.Mkdir(folder, 0o700); err != nil && (a.name != "" || !errors.Is(err, fs.ErrExist)) {
		return "", err
	}
	return folder, nil
}
