#include "mirror/follow/follow_log.h"

#include "base/clock.h"
#include "client/connect/channel.h"
#include "io/loop.h"
#include "mirror/link/follow_failure.h"
#include "mirror/link/hint.h"
#include "mirror/load/load.h"

#include <stdio.h>
#include <string.h>

enum { REASON_BYTES = 768 };

#define EVERY_NS (5 * NS_PER_S)
#define FIRST_NS (1 * NS_PER_S) /* a cluster that answers has done so by then */
/* Before that, the reason is for other threads, and is not logged. */
#define LOOK_NS (50 * NS_PER_MS)

static bool is_due(struct follow_log *log)
{
    int64_t now_ns = loop_now_ns(log->loop);
    if (now_ns < log->next_ns)
        return false;
    log->next_ns = now_ns + EVERY_NS;
    return true;
}

/* Answers of members do not say which member it was. */
static void explain(const struct follow_log *log, const char *reason, char ret_text[REASON_BYTES])
{
    const char *endpoint = channel_endpoint(log->channel);
    bool is_named = !channel_is_ready(log->channel) || strstr(reason, endpoint);
    snprintf(ret_text, REASON_BYTES, "%s%s%s%s", is_named ? "" : endpoint, is_named ? "" : ": ",
             reason, hint_for(&log->cluster->upstream, reason));
}

static void report_again(struct timer *timer)
{
    struct follow_log *log = CONTAINER_OF(timer, struct follow_log, again);
    const char *why = channel_failure(log->channel);
    bool is_late = loop_now_ns(log->loop) - log->since_ns >= FIRST_NS;
    if (is_late) {
        follow_log_waiting(log, *why ? why : "the cluster does not answer");
    } else if (*why) {
        /* It is too soon for a line in the log, but /readyz can already say why. */
        char text[REASON_BYTES];
        explain(log, why, text);
        follow_failure_set(log->follow_failure, text);
    }
    loop_timer_set(log->loop, &log->again, loop_now_ns(log->loop) + (is_late ? EVERY_NS : LOOK_NS));
}

void follow_log_start(struct follow_log *log, const struct mirror_options *cluster,
                      struct follow_failure *follow_failure, struct loop *loop,
                      const struct channel *channel)
{
    *log = (struct follow_log){
        .cluster = cluster, .follow_failure = follow_failure, .loop = loop, .channel = channel};
    log->again.fn = report_again;
}

void follow_log_stop(struct follow_log *log)
{
    if (log->loop)
        loop_timer_cancel(log->loop, &log->again);
}

void follow_log_expect_answer(struct follow_log *log, bool expected)
{
    if (!expected) {
        loop_timer_cancel(log->loop, &log->again);
    } else if (!log->again.set) {
        log->since_ns = loop_now_ns(log->loop);
        loop_timer_set(log->loop, &log->again, log->since_ns + LOOK_NS);
    }
}

void follow_log_waiting(struct follow_log *log, const char *reason)
{
    char text[REASON_BYTES];
    explain(log, reason, text);
    follow_failure_set(log->follow_failure, text);
    if (is_due(log) && log->cluster->on_waiting)
        log->cluster->on_waiting(log->cluster->ctx, text);
}

static void report_load(struct follow_log *log, const struct mirror_loaded *loaded)
{
    if (log->cluster->on_loading)
        log->cluster->on_loading(log->cluster->ctx, loaded);
}

/* A state that cannot be read is begun again and again, which is reported once. */
void follow_log_load(struct follow_log *log, const char *why)
{
    if (log->load_why == why)
        return;
    log->load_why = why;
    report_load(log, &(struct mirror_loaded){.why = why});
}

void follow_log_loading(struct follow_log *log, const struct load *load, bool complete)
{
    struct mirror_loaded loaded = {
        .why = log->load_why,
        .keys = load_keys(load),
        .different = load_different(load),
        .is_complete = complete,
    };
    if (is_due(log) || complete)
        report_load(log, &loaded);
    if (complete)
        log->load_why = NULL;
}

void follow_log_following(struct follow_log *log, struct mirror_followed followed)
{
    log->next_ns = 0;
    follow_failure_clear(log->follow_failure);
    followed.endpoint = channel_endpoint(log->channel);
    if (log->cluster->on_following)
        log->cluster->on_following(log->cluster->ctx, &followed);
}
