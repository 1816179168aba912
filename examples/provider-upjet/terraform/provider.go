// Package terraform is a small Terraform provider for package service, on Terraform's plugin SDK. Upjet calls it as a Go
// package, so that neither the build nor the program needs a Terraform CLI or a download.
package terraform

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"github.com/godwit-dev/godwit/examples/provider-upjet/service"
)

// Provider returns the Terraform provider store.
func Provider() *schema.Provider {
	text := func(required, forceNew bool, what string) *schema.Schema {
		return &schema.Schema{Type: schema.TypeString, Required: required, Optional: !required, ForceNew: forceNew, Description: what}
	}
	size := &schema.Schema{Type: schema.TypeInt, Optional: true, Description: "The size in GiB."}
	title := text(false, false, "A title for people.")
	return &schema.Provider{
		Schema: map[string]*schema.Schema{"endpoint": text(true, false, "The URL of the service.")},
		ResourcesMap: map[string]*schema.Resource{
			"store_volume": item(service.Volumes, "A volume, whose ID the service makes.", map[string]*schema.Schema{"title": title, "size": size}),
			"store_bucket": item(service.Buckets, "A bucket, which has a unique name.", map[string]*schema.Schema{"title": title, "size": size, "name": text(true, true, "The name.")}),
			"store_folder": item(service.Folders, "A folder of a bucket.", map[string]*schema.Schema{
				"title": title, "size": size, "name": text(true, true, "The name."), "bucket": text(true, true, "The name of the bucket."),
			}),
		},
		ConfigureContextFunc: func(_ context.Context, d *schema.ResourceData) (any, diag.Diagnostics) {
			return client{endpoint: textOf(d, "endpoint")}, nil
		},
	}
}

func textOf(d *schema.ResourceData, field string) string {
	text, _ := d.Get(field).(string)
	return text
}

// item is the resource of a kind. Its Terraform ID is the ID of the item.
func item(kind, description string, fields map[string]*schema.Schema) *schema.Resource {
	r := items{kind: kind, fields: fields}
	return &schema.Resource{
		Schema: fields, Description: description,
		CreateContext: r.create, ReadContext: r.read, UpdateContext: r.update, DeleteContext: r.delete,
	}
}

type items struct {
	kind   string
	fields map[string]*schema.Schema
}

func (r items) desired(d *schema.ResourceData) service.Item {
	size, _ := d.Get("size").(int)
	want := service.Item{Title: textOf(d, "title"), Size: size}
	if r.fields["name"] != nil {
		want.Name = textOf(d, "name")
	}
	if r.fields["bucket"] != nil {
		want.Bucket = textOf(d, "bucket")
	}
	return want
}

func (r items) create(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	created, err := clientOf(meta).create(ctx, r.kind, r.desired(d))
	if err != nil {
		return diag.FromErr(err)
	}
	d.SetId(created.ID)
	return r.set(d, created)
}

func (r items) read(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	found, err := clientOf(meta).read(ctx, r.kind, d.Id())
	switch {
	case errors.Is(err, errNotFound):
		d.SetId("")
		return nil
	case err != nil:
		return diag.FromErr(err)
	}
	return r.set(d, found)
}

func (r items) update(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	updated, err := clientOf(meta).update(ctx, r.kind, d.Id(), r.desired(d))
	if err != nil {
		return diag.FromErr(err)
	}
	return r.set(d, updated)
}

func (r items) delete(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	err := clientOf(meta).delete(ctx, r.kind, d.Id())
	if err != nil && !errors.Is(err, errNotFound) {
		return diag.FromErr(err)
	}
	return nil
}

func (r items) set(d *schema.ResourceData, is service.Item) diag.Diagnostics {
	values := map[string]any{"title": is.Title, "size": is.Size, "name": is.Name, "bucket": is.Bucket}
	for field := range r.fields {
		if err := d.Set(field, values[field]); err != nil {
			return diag.FromErr(err)
		}
	}
	return nil
}
