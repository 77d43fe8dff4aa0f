package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// fileWebhook is an entry of webhooks-file.
type fileWebhook struct {
	ID          string   `yaml:"id"`
	TenantID    string   `yaml:"tenantId"`
	WorkspaceID string   `yaml:"workspaceId"`
	URL         string   `yaml:"url"`
	Description string   `yaml:"description"`
	Disabled    bool     `yaml:"disabled"`
	Secret      string   `yaml:"secret"`
	SecretFile  string   `yaml:"secretFile"`
	Events      []string `yaml:"events"`
	Subject     string   `yaml:"subject"`
	RunID       string   `yaml:"runId"`
	Queue       string   `yaml:"queue"`
	TaskType    string   `yaml:"taskType"`
	WorkerID    string   `yaml:"workerId"`
	MachineID   string   `yaml:"machineId"`
}

// manageWebhooks makes the stored webhooks match webhooks-file.
func (p *process) manageWebhooks(ctx context.Context) error {
	if p.cfg.WebhooksFile == "" {
		return nil
	}
	text, err := os.ReadFile(p.cfg.WebhooksFile)
	if err != nil {
		return fmt.Errorf("webhooks-file: %w", err)
	}
	news, err := readWebhooks(text)
	if err == nil {
		err = p.tracker.Webhooks.Manage(model.WithActor(ctx, "webhooks-file"), news)
	}
	if err != nil {
		return fmt.Errorf("webhooks-file %s: %w", p.cfg.WebhooksFile, err)
	}
	go warnOfHosts(ctx, p.log, news, p.poster.Resolve)
	return nil
}

// How many host names of webhooks-file are looked up at a time, and the time limit of each.
const (
	concurrentLookups = 16
	lookupTimeout     = 10 * time.Second
)

// warnOfHosts logs which webhooks have hosts that cannot be called now. It runs concurrently with everything else, since name servers
// may be slow, and a webhook whose host becomes available later works then.
func warnOfHosts(ctx context.Context, log *slog.Logger, news []webhooks.NewWebhook, resolve func(context.Context, string) error) {
	var all sync.WaitGroup
	under := make(chan struct{}, concurrentLookups)
	for _, n := range news {
		under <- struct{}{}
		all.Go(func() {
			defer func() { <-under }()
			in, cancel := context.WithTimeout(ctx, lookupTimeout)
			defer cancel()
			if err := resolve(in, n.Settings.URL); err != nil && ctx.Err() == nil {
				log.Warn("the host of a webhook cannot be called now", n.Scope.LogAttr(), "webhookId", n.ID, "error", err)
			}
		})
	}
	all.Wait()
}

// readWebhooks never includes the text in an error: it may contain secrets.
func readWebhooks(text []byte) ([]webhooks.NewWebhook, error) {
	var listed []fileWebhook
	if err := yaml.UnmarshalWithOptions(text, &listed, yaml.Strict()); err != nil {
		if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			return nil, fmt.Errorf("line %d: %s", syntax.Token.Position.Line, syntax.Message)
		}
		return nil, errors.New("it is no list of webhooks: each is a mapping of id, url, events, secret or secretFile, and no other names " +
			"than docs/webhooks.md lists")
	}
	news := make([]webhooks.NewWebhook, len(listed))
	for i, l := range listed {
		if !model.ValidID(l.ID) {
			return nil, fmt.Errorf("webhook %d has no valid id; give each a unique id, by which it is recognised after a restart", i+1)
		}
		secret := l.Secret
		if l.SecretFile != "" {
			b, err := os.ReadFile(l.SecretFile)
			if err != nil {
				return nil, fmt.Errorf("%s: secretFile: %w", l.ID, err)
			}
			secret = strings.TrimSpace(string(b))
		}
		if secret == "" {
			return nil, fmt.Errorf("%s has neither secret nor secretFile; its receiver needs the secret to verify signatures", l.ID)
		}
		news[i] = webhooks.NewWebhook{
			Scope:  model.Scope{Tenant: cmp.Or(l.TenantID, "default"), Workspace: cmp.Or(l.WorkspaceID, "default")},
			ID:     l.ID,
			Secret: secret,
			Settings: webhooks.Settings{URL: l.URL, Description: l.Description, Enabled: !l.Disabled, Filter: events.Filter{
				Types: l.Events, Subject: l.Subject, RunID: l.RunID, Queue: l.Queue, TaskType: l.TaskType, WorkerID: l.WorkerID, MachineID: l.MachineID,
			}},
		}
		if scope := news[i].Scope; !model.ValidID(scope.Tenant) || !model.ValidID(scope.Workspace) {
			return nil, fmt.Errorf("%s: tenantId or workspaceId is no valid id", l.ID)
		}
	}
	return news, nil
}
