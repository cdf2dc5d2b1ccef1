#include "cmd/serve/options/options_private.h"

static const struct option logging[] = {
    FLAG_ENUM("log-level", serve_options, log_level, "info",
              "The least severe level that is logged.", "debug|info|warn|error|panic|fatal"),
    FLAG_ENUM("log-format", serve_options, log_format, "auto",
              "auto: text when vigil serve runs in a terminal, otherwise JSON.",
              "auto|json|console"),
    FLAG_LIST("log-outputs", serve_options, log_outputs, "default",
              "default or stderr, stdout, systemd/journal, or a file; separate several with "
              "commas. SIGUSR1 reopens files."),
    FLAG_ENUM("logger", serve_options, logger, "zap",
              "The logger of etcd to imitate; both values give the same lines.", "zap|capnslog"),
    FLAG_BOOL("enable-log-rotation", serve_options, enable_log_rotation,
              "Start a new log file when the file of --log-outputs has grown large."),
    FLAG_TEXT(
        "log-rotation-config-json", serve_options, log_rotation_config_json,
        "{\"maxsize\": 100, \"maxage\": 0, \"maxbackups\": 0, \"localtime\": false, "
        "\"compress\": false}",
        "When to rotate (maxsize in MB) and what to keep (maxage in days, maxbackups; 0: all)."),
    FLAG_BOOL("debug", serve_options, debug, "Deprecated name for --log-level debug."),
};

static const struct option monitoring[] = {
    FLAG_ENUM("metrics", serve_options, metrics, "basic",
              "extensive: adds histograms of call durations.", "basic|extensive"),
    FLAG_LIST("listen-metrics-urls", serve_options, listen_metrics_urls, "",
              "Further URLs that serve /metrics and the health endpoints."),
    FLAG_BOOL("enable-v2", serve_options, enable_v2,
              "Serve the v2 API: keys, its own users and roles, and members."),
    FLAG_BOOL(
        "enable-pprof", serve_options, enable_pprof,
        "Profiles of the Go runtime in etcd. Here /debug/pprof/ explains that there are none.",
        .ignored = "there is no Go runtime to profile"),
    FLAG_DURATION("warning-apply-duration", serve_options, warning_apply_duration_ns, "100ms",
                  "Requests that take longer than this to apply, including the wait for the disk, "
                  "are logged.",
                  BETWEEN(0, 1000 * HOUR)),
    FLAG_DURATION(
        "warning-unary-request-duration", serve_options, warning_unary_request_duration_ns, "300ms",
        "Calls that take longer than this are logged; 0: 300ms.", BETWEEN(0, 1000 * HOUR)),
};

const struct option_group serve_logging_options = GROUP("Logging", logging);
const struct option_group serve_monitoring_options = GROUP("Monitoring", monitoring);
