#include "cmd/serve/options_private.h"

static const struct option logging[] = {
    {
        .name = "log-level",
        .kind = OPTION_ENUM,
        .choices = "debug|info|warn|error|panic|fatal",
        .fallback = "info",
        .help = "The least severe level that is logged.",
        FIELD(log_level),
    },
    {
        .name = "log-format",
        .kind = OPTION_ENUM,
        .choices = "auto|json|console",
        .fallback = "auto",
        .help = "auto: text when vigil serve runs in a terminal, otherwise JSON.",
        FIELD(log_format),
    },
    {
        .name = "log-outputs",
        .kind = OPTION_LIST,
        .fallback = "default",
        .help = "default or stderr, stdout, systemd/journal, or a file; separate several with "
                "commas. SIGUSR1 reopens files.",
        FIELD(log_outputs),
    },
    {
        .name = "logger",
        .kind = OPTION_ENUM,
        .choices = "zap|capnslog",
        .fallback = "zap",
        .help = "The logger of etcd to imitate; both values give the same lines.",
        FIELD(logger),
    },
    {
        .name = "enable-log-rotation",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Start a new log file when the file of --log-outputs has grown large.",
        FIELD(enable_log_rotation),
    },
    {
        .name = "log-rotation-config-json",
        .kind = OPTION_TEXT,
        .fallback = "{\"maxsize\": 100, \"maxage\": 0, \"maxbackups\": 0, \"localtime\": false, "
                    "\"compress\": false}",
        .help =
            "When to rotate (maxsize in MB) and what to keep (maxage in days, maxbackups; 0: all).",
        FIELD(log_rotation_config_json),
    },
    {
        .name = "debug",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Deprecated name for --log-level debug.",
        FIELD(debug),
    },
};

static const struct option monitoring[] = {
    {
        .name = "metrics",
        .kind = OPTION_ENUM,
        .choices = "basic|extensive",
        .fallback = "basic",
        .help = "extensive: adds histograms of call durations.",
        FIELD(metrics),
    },
    {
        .name = "listen-metrics-urls",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Further URLs that serve /metrics and the health endpoints.",
        FIELD(listen_metrics_urls),
    },
    {
        .name = "enable-v2",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Serve the v2 API: keys, its own users and roles, and members.",
        FIELD(enable_v2),
    },
    {
        .name = "enable-pprof",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help =
            "Profiles of the Go runtime in etcd. Here /debug/pprof/ explains that there are none.",
        .ignored = "there is no Go runtime to profile",
        FIELD(enable_pprof),
    },
    {
        .name = "warning-apply-duration",
        .kind = OPTION_DURATION,
        .fallback = "100ms",
        .help = "Requests that take longer than this to apply, including the wait for the disk, "
                "are logged.",
        .min = 0,
        .max = 1000 * HOUR,
        FIELD(warning_apply_duration_ns),
    },
    {
        .name = "warning-unary-request-duration",
        .kind = OPTION_DURATION,
        .fallback = "300ms",
        .help = "Calls that take longer than this are logged; 0: 300ms.",
        .min = 0,
        .max = 1000 * HOUR,
        FIELD(warning_unary_request_duration_ns),
    },
};

const struct option_group serve_logging_options = GROUP("Logging", logging);
const struct option_group serve_monitoring_options = GROUP("Monitoring", monitoring);
