module example.com/mailer

go 1.24.0

require github.com/prometheus/client_golang v1.20.5
