#include "cmd/ctl/live/front.h"

#include <math.h>

void front_copy_visible(char *to, size_t room, struct slice text)
{
    size_t len = size_min(text.len, room - 1);
    for (size_t i = 0; i < len; i++)
        to[i] = text.ptr[i] >= ' ' && text.ptr[i] < 0x7f ? (char)text.ptr[i] : '?';
    to[len] = '\0';
}

static void copy_label(char to[FRONT_TEXT_BYTES], const struct metrics_sample *sample,
                       const char *name)
{
    front_copy_visible(to, FRONT_TEXT_BYTES, metrics_label(sample, name));
}

static void add_upstream(struct front *front, const struct metrics_sample *sample)
{
    if (front->count == FRONT_UPSTREAMS_MAX)
        return;
    struct front_upstream *upstream = &front->upstreams[front->count++];
    *upstream = (struct front_upstream){.answers = sample->value > 0};
    copy_label(upstream->endpoint, sample, "endpoint");
}

/* The samples with the same endpoint: what its member has said. */
static void describe(struct front *front, const struct metrics_sample *sample)
{
    char endpoint[FRONT_TEXT_BYTES];
    copy_label(endpoint, sample, "endpoint");
    for (size_t i = 0; i < front->count; i++) {
        struct front_upstream *upstream = &front->upstreams[i];
        if (strcmp(upstream->endpoint, endpoint) != 0)
            continue;
        copy_label(upstream->role, sample, "role");
        copy_label(upstream->version, sample, "version");
        copy_label(upstream->member, sample, "member");
        upstream->is_followed = slice_is(metrics_label(sample, "followed"), "true");
    }
}

void front_read(struct front *front, const struct metrics *metrics)
{
    *front = (struct front){.is_front = metrics_has(metrics, "vigil_cluster_connected")};
    if (!front->is_front)
        return;
    double lag = metrics_sum(metrics, "vigil_cluster_mirror_lag_revisions", NULL);
    front->is_followed = metrics_sum(metrics, "vigil_cluster_connected", NULL) > 0;
    front->is_synced = metrics_sum(metrics, "vigil_cluster_synced", NULL) > 0;
    front->revision = metrics_sum(metrics, "vigil_cluster_mirrored_revision", NULL);
    front->silent_s = metrics_sum(metrics, "vigil_cluster_silent_seconds", NULL);
    front->lag = isfinite(lag) && front->is_followed ? lag : -1;
    for (size_t i = 0; i < metrics->count; i++)
        if (slice_is(metrics->samples[i].name, "vigil_cluster_upstream_up"))
            add_upstream(front, &metrics->samples[i]);
    for (size_t i = 0; i < metrics->count; i++)
        if (slice_is(metrics->samples[i].name, "vigil_cluster_upstream_info"))
            describe(front, &metrics->samples[i]);
}
