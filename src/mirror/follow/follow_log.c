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

static bool is_due(struct news *news)
{
    int64_t now_ns = loop_now_ns(news->loop);
    if (now_ns < news->next_ns)
        return false;
    news->next_ns = now_ns + EVERY_NS;
    return true;
}

/* Answers of members do not say which member it was. */
static void explain(const struct news *news, const char *reason, char ret_text[REASON_BYTES])
{
    const char *endpoint = channel_endpoint(news->channel);
    bool is_named = !channel_is_ready(news->channel) || strstr(reason, endpoint);
    snprintf(ret_text, REASON_BYTES, "%s%s%s%s", is_named ? "" : endpoint, is_named ? "" : ": ",
             reason, hint_for(&news->cluster->upstream, reason));
}

static void set_trouble(struct news *news, const char *reason)
{
    char text[REASON_BYTES];
    explain(news, reason, text);
    trouble_set(news->trouble, text);
}

static void report_again(struct timer *timer)
{
    struct news *news = CONTAINER_OF(timer, struct news, again);
    const char *why = channel_failure(news->channel);
    bool is_late = loop_now_ns(news->loop) - news->since_ns >= FIRST_NS;
    if (is_late)
        news_waiting(news, *why ? why : "the cluster does not answer");
    else if (*why)
        set_trouble(news, why);
    loop_timer_set(news->loop, &news->again,
                   loop_now_ns(news->loop) + (is_late ? EVERY_NS : LOOK_NS));
}

void news_start(struct news *news, const struct cluster_options *cluster, struct trouble *trouble,
                struct loop *loop, const struct channel *channel)
{
    *news = (struct news){.cluster = cluster, .trouble = trouble, .loop = loop, .channel = channel};
    news->again.fn = report_again;
}

void news_stop(struct news *news)
{
    if (news->loop)
        loop_timer_cancel(news->loop, &news->again);
}

void news_expect_answer(struct news *news, bool expected)
{
    if (!expected) {
        loop_timer_cancel(news->loop, &news->again);
    } else if (!news->again.set) {
        news->since_ns = loop_now_ns(news->loop);
        loop_timer_set(news->loop, &news->again, news->since_ns + LOOK_NS);
    }
}

void news_waiting(struct news *news, const char *reason)
{
    char text[REASON_BYTES];
    explain(news, reason, text);
    trouble_set(news->trouble, text);
    if (is_due(news) && news->cluster->on_waiting)
        news->cluster->on_waiting(news->cluster->ctx, text);
}

static void report_load(struct news *news, const struct cluster_loaded *loaded)
{
    if (news->cluster->on_loading)
        news->cluster->on_loading(news->cluster->ctx, loaded);
}

/* A state that cannot be read is begun again and again, which is reported once. */
void news_load(struct news *news, const char *why)
{
    if (news->load_why == why)
        return;
    news->load_why = why;
    report_load(news, &(struct cluster_loaded){.why = why});
}

void news_loading(struct news *news, const struct load *load, bool complete)
{
    struct cluster_loaded loaded = {
        .why = news->load_why,
        .keys = load_keys(load),
        .different = load_different(load),
        .is_complete = complete,
    };
    if (is_due(news) || complete)
        report_load(news, &loaded);
    if (complete)
        news->load_why = NULL;
}

void news_following(struct news *news, struct cluster_followed followed)
{
    news->next_ns = 0;
    trouble_clear(news->trouble);
    followed.endpoint = channel_endpoint(news->channel);
    if (news->cluster->on_following)
        news->cluster->on_following(news->cluster->ctx, &followed);
}
