/* The choices of the flags of `vigil serve` that are enums, in the order of their rows. */
#ifndef VIGIL_CMD_SERVE_OPTIONS_CHOICES_H
#define VIGIL_CMD_SERVE_OPTIONS_CHOICES_H

enum serve_log_format { SERVE_LOG_AUTO, SERVE_LOG_JSON, SERVE_LOG_CONSOLE };
enum serve_compaction_mode { SERVE_COMPACT_PERIODIC, SERVE_COMPACT_REVISION };
enum serve_undecodable { SERVE_UNDECODABLE_ERROR, SERVE_UNDECODABLE_SKIP };
enum serve_managed_fields { SERVE_MANAGED_FIELDS_APPLY, SERVE_MANAGED_FIELDS_ALL };
enum serve_upstream_reads {
    SERVE_READS_AUTO,
    SERVE_READS_MIRROR,
    SERVE_READS_FORWARD,
    SERVE_READS_FENCE,
    SERVE_READS_CACHED,
};
enum serve_metrics_detail { SERVE_METRICS_BASIC, SERVE_METRICS_EXTENSIVE };

#endif
