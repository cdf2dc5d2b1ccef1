/*
 * A page of metrics that a server has sent, in Prometheus' text format:
 *
 *     grpc_server_handled_total{grpc_code="OK",grpc_method="Range",…} 12
 *
 * Lines that are not understood are skipped; the page and the number of its samples are bounded.
 * Any thread.
 */
#ifndef VIGIL_CMD_CTL_LIVE_METRICS_H
#define VIGIL_CMD_CTL_LIVE_METRICS_H

#include "base/slice.h"

enum {
    METRICS_BYTES_MAX = 16 << 20,
    METRICS_SAMPLES_MAX = 100 * 1000,
};

struct metrics_sample {
    struct slice name, labels; /* labels: what is between the braces */
    double value;
};

struct metrics {
    char *text; /* owned, as are the samples */
    struct metrics_sample *samples;
    size_t count;
    int64_t time_ns; /* when it was received, on the monotonic clock; 0: there is no page */
};

/* Copies the page. */
void metrics_read(struct metrics *metrics, struct slice page, int64_t time_ns);
void metrics_fini(struct metrics *metrics);

/* The sum of all samples of that name. label: "name=\"value\"" that they must have; NULL: any. */
double metrics_sum(const struct metrics *metrics, const char *name, const char *label);
bool metrics_has(const struct metrics *metrics, const char *name);
/* A Vigil with a store of its own has no peers, and no other member can join it. */
static inline bool metrics_are_of_single_vigil(const struct metrics *metrics)
{
    return metrics_has(metrics, "vigil_net_connections") &&
           !metrics_has(metrics, "vigil_cluster_connected");
}
/* The value of a label, as it is written in the page; empty: there is none. */
struct slice metrics_label(const struct metrics_sample *sample, const char *name);

/* The change per second since an older page; 0 if a page is missing or the server was restarted. */
double metrics_rate(const struct metrics *older, const struct metrics *now, const char *name,
                    const char *label);
/* The value below which this part (0.99) of a histogram's values were between two pages, or since
 * the start of the server if older is NULL; -1: there were none. It is the upper bound of a
 * bucket. */
double metrics_quantile(const struct metrics *older, const struct metrics *now, const char *name,
                        double part);

#endif
