#include "cmd/serve_options_rows.h"

static const struct option logging[] = {
    {
        .name = "log-level",
        .kind = OPTION_ENUM,
        .choices = "debug|info|warn|error|panic|fatal",
        .fallback = "info",
        .help = "The least important lines that are written.",
        FIELD(log_level),
    },
    {
        .name = "log-format",
        .kind = OPTION_ENUM,
        .choices = "auto|json|console",
        .fallback = "auto",
        .help = "auto: for people when vigil serve runs in a terminal, JSON otherwise.",
        FIELD(log_format),
    },
    {
        .name = "log-outputs",
        .kind = OPTION_LIST,
        .fallback = "default",
        .help = "default and stderr, stdout, systemd/journal, or a file; several with commas. "
                "SIGUSR1 opens files anew.",
        FIELD(log_outputs),
    },
    {
        .name = "logger",
        .kind = OPTION_ENUM,
        .choices = "zap|capnslog",
        .fallback = "zap",
        .help = "The shape of the lines; there is one.",
        FIELD(logger),
    },
    {
        .name = "enable-log-rotation",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Begin a new file when the one of --log-outputs is large.",
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
        .help = "Old name of --log-level debug.",
        FIELD(debug),
    },
};

static const struct option monitoring[] = {
    {
        .name = "metrics",
        .kind = OPTION_ENUM,
        .choices = "basic|extensive",
        .fallback = "basic",
        .help = "extensive: with histograms of the time that calls take.",
        FIELD(metrics),
    },
    {
        .name = "listen-metrics-urls",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "Where /metrics and the health endpoints are served besides the client URLs.",
        FIELD(listen_metrics_urls),
    },
    {
        .name = "enable-v2",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Serve the v2 API: keys, its own users and roles, members.",
        FIELD(enable_v2),
    },
    {
        .name = "enable-pprof",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Profiles of the Go runtime in etcd; /debug/pprof/ says that there are none here.",
        .ignored = "there is no Go runtime to profile",
        FIELD(enable_pprof),
    },
    {
        .name = "warning-apply-duration",
        .kind = OPTION_DURATION,
        .fallback = "100ms",
        .help = "A request that takes longer to apply, with its wait for the disk, is logged.",
        .min = 0,
        .max = 1000 * HOUR,
        FIELD(warning_apply_duration_ns),
    },
    {
        .name = "warning-unary-request-duration",
        .kind = OPTION_DURATION,
        .fallback = "300ms",
        .help = "A call that takes longer is logged; 0: 300ms.",
        .min = 0,
        .max = 1000 * HOUR,
        FIELD(warning_unary_request_duration_ns),
    },
};

const struct option_group serve_logging_options = GROUP("Logging", logging);
const struct option_group serve_monitoring_options = GROUP("Monitoring", monitoring);
