package main

import (
	"crypto/tls"
	"crypto/x509"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// buildInfo exports the version that runs.
func buildInfo() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "lubdub_build_info", Help: "1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

// certificates exports when the process's own certificates expire, by their use.
type certificates map[string]func() (*tls.Certificate, error)

var certificateEnd = prometheus.NewDesc("lubdub_tls_certificate_not_after_timestamp_seconds",
	"When the certificate that is in use ends, in seconds since 1970: that of the listeners, or the one shown to "+
		"redis. Absent without a certificate.",
	[]string{"of"}, nil)

// ofListeners adds the certificate of the listeners; nil: they have none.
func (c certificates) ofListeners(config *tls.Config) {
	if config == nil {
		return
	}
	c["listeners"] = func() (*tls.Certificate, error) {
		current, err := config.GetConfigForClient(nil)
		if err != nil {
			return nil, err
		}
		return &current.Certificates[0], nil
	}
}

// ofRedis adds the client certificate for Redis, if there is one.
func (c certificates) ofRedis(config *tls.Config) {
	if config.GetClientCertificate != nil {
		c["redis"] = func() (*tls.Certificate, error) { return config.GetClientCertificate(nil) }
	}
}

func (c certificates) Describe(to chan<- *prometheus.Desc) { to <- certificateEnd }

func (c certificates) Collect(to chan<- prometheus.Metric) {
	for of, current := range c {
		if leaf := leafOf(current()); leaf != nil {
			to <- prometheus.MustNewConstMetric(certificateEnd, prometheus.GaugeValue, float64(leaf.NotAfter.Unix()), of)
		}
	}
}

func leafOf(c *tls.Certificate, err error) *x509.Certificate {
	if err != nil {
		return nil
	}
	return c.Leaf
}
