#include "cmd/ctl/live/top_view.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/decode/decode.h"
#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/decode/size_text.h"
#include "cmd/ctl/live/screen.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

enum {
    ROWS_FIXED = 12,
    CALLS_SHOWN_MAX = 8,
    WATCHERS_SHOWN_MAX = 5,
    NAME_COLUMNS = 38, /* so that a row has 79 columns */
    SERVER_COLUMNS = 20,
    JSON_PREFIXES_MAX = 50,
    PREFIXES_MAX = 256
};

#define PUT(to, ...) \
    xalloc_check(buf_append_format(to, __VA_ARGS__) == ST_OK ? (void *)(to) : NULL, 1)

/* -- Figures as texts; a figure that is not known is "-" -- */

struct figure {
    char text[SIZE_TEXT_BYTES * 2];
};

static struct figure number(double value)
{
    struct figure f = {"-"};
    if (value >= 0)
        snprintf(f.text, sizeof(f.text), "%.0f", value);
    return f;
}

static struct figure size(double value)
{
    struct figure f = {"-"};
    if (value >= 0)
        size_text((uint64_t)value, f.text);
    return f;
}

static struct figure milliseconds(double seconds)
{
    struct figure f = {"-"};
    if (seconds >= 0)
        snprintf(f.text, sizeof(f.text), "%.4g ms", seconds * 1000);
    return f;
}

static struct figure rate(const struct top_report *r, double value)
{
    struct figure f = {"-"};
    /* A rate needs two readings. */
    if (value >= 0 && !r->is_first)
        snprintf(f.text, sizeof(f.text), value < 10 ? "%.1f" : "%.0f", value);
    return f;
}

static struct figure duration(double seconds)
{
    struct figure f = {"-"};
    int64_t s = (int64_t)seconds;
    if (s >= 0)
        snprintf(f.text, sizeof(f.text), "%" PRId64 " d %02d:%02d:%02d", s / 86400,
                 (int)(s / 3600 % 24), (int)(s / 60 % 60), (int)(s % 60));
    return f;
}

/* A text that may come from a server. */
static void put_line(struct buf *to, const char *title, const char *text)
{
    PUT(to, "%s", title);
    xalloc_check(safe_text_append(to, slice_from_text(text), SAFE_ONE_LINE) == ST_OK ? to : NULL,
                 1);
    PUT(to, "\n");
}

/* -- The upper part -- */

static void put_head(struct buf *to, const struct top_view *v, const struct top_report *r)
{
    char clock[16];
    time_t seconds = (time_t)(v->wall_ns / NS_PER_S);
    struct tm parts;
    localtime_r(&seconds, &parts);
    strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
    if (r->tier.is_tier) {
        PUT(to, "vigil top  %s  %s  Vigil, in front of a kube-apiserver  up %s\n", clock,
            v->endpoint, duration(r->uptime_s).text);
        return;
    }
    PUT(to, "vigil top  %s  %s  %s%s  up %s\n", clock, v->endpoint,
        r->is_vigil ? "Vigil, as etcd " : "etcd ", r->status.known ? r->status.version : "-",
        duration(r->uptime_s).text);
}

static const char *role_of(const struct top_status *s)
{
    return !s->known       ? "-"
           : s->is_leader  ? "leader"
           : s->is_learner ? "learner"
           : s->has_leader ? "follower"
                           : "no leader";
}

static void put_store(struct buf *to, const struct top_report *r)
{
    const struct top_status *s = &r->status;
    PUT(to, "Store     revision %s (%s/s), compacted %s, %s keys\n",
        number(s->known ? (double)s->revision : -1).text, rate(r, r->revisions_rate).text,
        number(r->compact_revision).text, number(r->keys).text);
    PUT(to, "Size      %s in use of %s, quota %s\n",
        size(s->known ? (double)s->db_used_bytes : -1).text,
        size(s->known ? (double)s->db_bytes : -1).text,
        s->quota_bytes > 0 ? size((double)s->quota_bytes).text : "-");
    PUT(to, "Member    %s, term %s\n", role_of(s), number(s->known ? (double)s->term : -1).text);
}

static void put_machine(struct buf *to, const struct top_report *r)
{
    char cpu[SIZE_TEXT_BYTES] = "-";
    if (r->cpu >= 0 && !r->is_first)
        snprintf(cpu, sizeof(cpu), "%.0f %%", r->cpu * 100);
    PUT(to, "Process   CPU %s, memory %s, files %s of %s\n", cpu, size(r->memory_bytes).text,
        number(r->files).text, number(r->files_max).text);
    if (r->tier.is_tier)
        PUT(to, "Network   %s connections\n", number(r->connections).text);
}

static void put_process(struct buf *to, const struct top_report *r)
{
    put_machine(to, r);
    PUT(to, "Network   %s connections, received %s/s, sent %s/s\n", number(r->connections).text,
        r->is_first ? "-" : size(r->received_rate).text,
        r->is_first ? "-" : size(r->sent_rate).text);
    PUT(to, "Disk      %s syncs/s, p50 %s, p99 %s; commits p99 %s\n", rate(r, r->sync_rate).text,
        milliseconds(r->sync_p50_s).text, milliseconds(r->sync_p99_s).text,
        milliseconds(r->commit_p99_s).text);
    PUT(to, "Watches   %s watchers on %s streams, %s events/s\n", number(r->watchers).text,
        number(r->streams).text, rate(r, r->events_rate).text);
    PUT(to, "Slow      %s watchers, the slowest %s revisions behind\n",
        number(r->slow_watchers).text, number(r->behind_max).text);
}

/* For a server in front of a cluster. Returns the number of rows. */
static size_t put_front(struct buf *to, const struct front *front)
{
    if (!front->is_front)
        return 0;
    if (front->is_followed)
        PUT(to, "Mirror    revision %s, %s behind the cluster%s\n", number(front->revision).text,
            number(front->lag).text, front->is_synced ? "" : ", not complete yet");
    else
        PUT(to, "Mirror    revision %s, NO MEMBER IS FOLLOWED, silent for %s s\n",
            number(front->revision).text, number(front->silent_s).text);
    for (size_t i = 0; i < front->count; i++) {
        const struct front_upstream *u = &front->upstreams[i];
        PUT(to, "Upstream  %-32.32s %-14s %-8s %-8.8s%s\n", u->endpoint,
            u->answers ? "answers" : "DOES NOT ANSWER", *u->role ? u->role : "-",
            *u->version ? u->version : "-", u->is_followed ? " <" : "");
    }
    return front->count + 1;
}

/* -- A watch tier -- */

static void put_tier(struct buf *to, const struct top_report *r)
{
    const struct tier_report *t = &r->tier;
    PUT(to, "Mirror    %s collections, %s not complete, %s refused; %s objects, %s\n",
        number(t->serving).text, number(t->loading).text, number(t->refused).text,
        number(t->objects).text, size(t->bytes).text);
    PUT(to, "Clients   %s watches, %s events/s; per second %s watches, %s lists, %s gets\n",
        number(t->watches).text, rate(r, t->events_rate).text, rate(r, t->watches_rate).text,
        rate(r, t->lists_rate).text, rate(r, t->gets_rate).text);
    PUT(to, "Passed on %s calls/s, %s reads/s; %s reads/s are refused\n",
        rate(r, t->passed_on_rate).text, rate(r, t->unmirrored_rate).text,
        rate(r, t->denied_rate).text);
    PUT(to, "Reviews   %s/s, p99 %s; %s wait, %s failed\n", rate(r, t->reviews_rate).text,
        milliseconds(t->review_p99_s).text, number(t->reviews_waiting).text,
        number(t->reviews_failed).text);
    PUT(to, "Upstream  %s own calls/s, %s/s waited for --upstream-qps; %s were throttled\n",
        rate(r, t->calls_rate).text, rate(r, t->delayed_rate).text, number(t->throttled).text);
}

/* "3 s", "25 h" */
static struct figure age(double seconds)
{
    struct figure f = {"-"};
    if (seconds >= 7200)
        snprintf(f.text, sizeof(f.text), "%.0f h", seconds / 3600);
    else if (seconds >= 0)
        snprintf(f.text, sizeof(f.text), "%.0f s", seconds);
    return f;
}

static void put_collections(struct buf *to, const struct top_report *r, size_t rows)
{
    PUT(to, SCREEN_HEADING "%-32s %-8s %9s %9s %7s %7s\n", "COLLECTION", "PHASE", "OBJECTS", "SIZE",
        "LAG", "AGE");
    for (size_t i = 0; i < r->tier.count && rows > 0; i++, rows--) {
        const struct tier_collection_report *c = &r->tier.collections[i];
        char name[TIER_NAME_BYTES + TIER_WORD_BYTES + 4];
        snprintf(name, sizeof(name), "%s (%s)", c->name, c->encoding);
        PUT(to, "%-32.32s %-8s %9s %9s %7s %7s%s\n", name, c->phase, number(c->objects).text,
            size(c->bytes).text, age(c->lag_s).text, age(c->age_s).text, c->connected ? "" : " !");
        if (*c->reason && rows > 1) {
            PUT(to, "  %.76s\n", c->reason);
            rows--;
        }
    }
}

/* -- Lists -- */

/* How many rows the lists may have. */
static size_t put_calls(struct buf *to, const struct top_report *r, size_t rows)
{
    size_t shown = size_min(r->call_count, size_min(CALLS_SHOWN_MAX, rows));
    PUT(to, SCREEN_HEADING "%-*s %12s %12s %14s\n", NAME_COLUMNS, "CALLS", "PER SECOND", "FAILED/S",
        "SINCE START");
    for (size_t i = 0; i < shown; i++)
        PUT(to, "%-*s %12s %12s %14s\n", NAME_COLUMNS, r->calls[i].name,
            rate(r, r->calls[i].rate).text, rate(r, r->calls[i].errors_rate).text,
            number(r->calls[i].total).text);
    return shown;
}

static size_t put_watchers(struct buf *to, const struct top_report *r, size_t rows)
{
    size_t shown = size_min(r->watcher_count, size_min(WATCHERS_SHOWN_MAX, rows));
    if (shown == 0)
        return 0;
    PUT(to, SCREEN_HEADING "%-*s %12s %12s\n", NAME_COLUMNS, "SLOWEST WATCHERS", "BEHIND", "HELD");
    for (size_t i = 0; i < shown; i++) {
        AUTO(buf_fini) struct buf peer = {0};
        xalloc_check(safe_text_append_short(&peer, slice_from_text(r->watchers_behind[i].peer),
                                            NAME_COLUMNS) == ST_OK
                         ? to
                         : NULL,
                     1);
        PUT(to, "%-*.*s %12s %12s\n", NAME_COLUMNS, SLICE_ARGS(buf_slice(&peer)),
            number(r->watchers_behind[i].behind).text, size(r->watchers_behind[i].held_bytes).text);
    }
    return shown + 1;
}

static void put_prefix(struct buf *to, const struct top_view *v, const struct prefix_count *count)
{
    AUTO(buf_fini) struct buf name = {0};
    struct slice text = slice_of(count->name, count->name_len);
    if (count == &v->counts->others)
        text = SLICE_LITERAL("(others)");
    else if (text.len == 0)
        text = SLICE_LITERAL("(without a prefix)");
    xalloc_check(safe_text_append_short(&name, text, NAME_COLUMNS) == ST_OK ? to : NULL, 1);
    double seconds = v->counted_s > 0 ? v->counted_s : 1;
    double changes = (double)count->changes / seconds;
    struct figure per_second = {""};
    snprintf(per_second.text, sizeof(per_second.text), changes < 10 ? "%.1f" : "%.0f", changes);
    PUT(to, "%-*.*s %12s %12s %14" PRIu64 "\n", NAME_COLUMNS, SLICE_ARGS(buf_slice(&name)),
        per_second.text, size((double)count->bytes / seconds).text, count->total);
}

static void put_prefixes(struct buf *to, const struct top_view *v, size_t rows)
{
    static const char *const orders[] = {"changes", "bytes", "total"};
    const struct prefix_count *largest[PREFIXES_MAX];
    char title[NAME_COLUMNS];
    if (!v->counts)
        return;
    snprintf(title, sizeof(title), "CHANGES BELOW (by %s)", orders[v->order]);
    PUT(to, SCREEN_HEADING "%-*s %12s %12s %14s\n", NAME_COLUMNS, title, "PER SECOND", "SIZE/S",
        "SINCE BEGIN");
    if (*v->prefixes_error)
        put_line(to, "Changes cannot be watched: ", v->prefixes_error);
    size_t found =
        prefix_counts_largest(v->counts, v->order, largest, size_min(rows, COUNT_OF(largest)));
    for (size_t i = 0; i < found; i++)
        put_prefix(to, v, largest[i]);
}

void top_view_server(struct buf *to, size_t place, bool is_shown, const char *endpoint,
                     const struct top_report *r)
{
    const struct top_status *s = &r->status;
    double calls = 0;
    for (size_t i = 0; i < r->call_count; i++)
        calls += r->calls[i].rate;
    if (place == 0)
        PUT(to, SCREEN_HEADING "  %-*s %-9s %9s %7s %9s %9s %9s\n", SERVER_COLUMNS, "SERVER",
            "ROLE", "REVISION", "CALLS/S", "SIZE", "MEMORY", "SYNC P99");
    /* The end of an address says more than its beginning. */
    const char *address = strstr(endpoint, "://") ? strstr(endpoint, "://") + 3 : endpoint;
    size_t len = strlen(address), cut = len > SERVER_COLUMNS ? len - SERVER_COLUMNS : 0;
    PUT(to, "%c %-*s ", is_shown ? '>' : ' ', SERVER_COLUMNS, address + cut);
    if (r->tier.is_tier) {
        PUT(to, "%-9s %9s %7s %9s %9s %9s\n", "tier", "-", "-", size(r->tier.bytes).text,
            size(r->memory_bytes).text, "-");
        return;
    }
    if (!s->known) {
        put_line(to, "", s->error);
        return;
    }
    PUT(to, "%-9s %9" PRId64 " %7s %9s %9s %9s\n", role_of(s), s->revision,
        rate(r, r->has_metrics ? calls : -1).text, size((double)s->db_bytes).text,
        size(r->memory_bytes).text, milliseconds(r->sync_p99_s).text);
}

void top_view_text(struct buf *to, const struct top_view *view, const struct top_report *report)
{
    size_t rows = view->rows > ROWS_FIXED + 3 ? view->rows - ROWS_FIXED : 3;
    put_head(to, view, report);
    if (report->tier.is_tier) {
        put_machine(to, report);
        put_tier(to, report);
        put_collections(to, report, rows);
        return;
    }
    put_store(to, report);
    if (report->has_metrics)
        put_process(to, report);
    else
        put_line(to, "Metrics   ", *view->metrics_error ? view->metrics_error : "not read yet");
    rows -= size_min(rows, put_front(to, &report->front));
    if (*report->status.error)
        PUT(to, "Status    %s\n", report->status.error);
    /* Calls get at most half of the rows, so that the other lists remain visible. */
    rows -= size_min(rows, put_calls(to, report, rows / 2 + 1));
    rows -= size_min(rows, put_watchers(to, report, rows / 2));
    put_prefixes(to, view, rows ? rows : 1);
}

/* -- JSON -- */

static void put_number(struct json_writer *w, const char *name, double value)
{
    char text[40];
    if (value < 0 || !isfinite(value))
        return;
    int len = snprintf(text, sizeof(text), "%.13g", value);
    json_member_raw(w, name, slice_of(text, (size_t)len));
}

static void put_json_status(struct json_writer *w, const struct top_report *r)
{
    const struct top_status *s = &r->status;
    json_member_text(w, "server", r->is_vigil ? "vigil" : "etcd");
    if (s->known) {
        json_member_text(w, "version", s->version);
        put_number(w, "revision", (double)s->revision);
        put_number(w, "db_bytes", (double)s->db_bytes);
        put_number(w, "db_used_bytes", (double)s->db_used_bytes);
        put_number(w, "quota_bytes", (double)s->quota_bytes);
        json_member_bool(w, "is_leader", s->is_leader);
    }
    if (*s->error && !r->tier.is_tier) { /* a tier has no status */
        json_member_text(w, "error", s->error);
    }
}

static void put_json_figures(struct json_writer *w, const struct top_report *r)
{
    put_number(w, "keys", r->keys);
    put_number(w, "compact_revision", r->compact_revision);
    put_number(w, "revisions_per_s", r->is_first ? -1 : r->revisions_rate);
    put_number(w, "cpu", r->is_first ? -1 : r->cpu);
    put_number(w, "memory_bytes", r->memory_bytes);
    put_number(w, "open_files", r->files);
    put_number(w, "connections", r->connections);
    put_number(w, "uptime_s", r->uptime_s);
    put_number(w, "syncs_per_s", r->is_first ? -1 : r->sync_rate);
    put_number(w, "sync_p50_s", r->sync_p50_s);
    put_number(w, "sync_p99_s", r->sync_p99_s);
    put_number(w, "commit_p99_s", r->commit_p99_s);
    put_number(w, "watchers", r->watchers);
    put_number(w, "watch_streams", r->streams);
    put_number(w, "slow_watchers", r->slow_watchers);
    put_number(w, "events_per_s", r->is_first ? -1 : r->events_rate);
    put_number(w, "behind_revisions_max", r->behind_max);
}

static void put_json_front(struct json_writer *w, const struct front *front)
{
    if (!front->is_front)
        return;
    json_member_object(w, "mirror");
    json_member_bool(w, "followed", front->is_followed);
    put_number(w, "revision", front->revision);
    put_number(w, "behind_revisions", front->lag);
    put_number(w, "silent_s", front->silent_s);
    json_end_object(w);
    json_member_array(w, "upstreams");
    for (size_t i = 0; i < front->count; i++) {
        const struct front_upstream *u = &front->upstreams[i];
        json_begin_object(w);
        const char *const texts[][2] = {{"endpoint", u->endpoint},
                                        {"member", u->member},
                                        {"role", u->role},
                                        {"version", u->version}};
        for (size_t n = 0; n < COUNT_OF(texts); n++) {
            if (!*texts[n][1])
                continue;
            json_member_text(w, texts[n][0], texts[n][1]);
        }
        json_member_bool(w, "answers", u->answers);
        json_member_bool(w, "followed", u->is_followed);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_json_rate(struct json_writer *w, const struct top_report *r, const char *name,
                          double value)
{
    put_number(w, name, r->is_first ? -1 : value);
}

static void put_json_tier(struct json_writer *w, const struct top_report *r)
{
    const struct tier_report *t = &r->tier;
    if (!t->is_tier)
        return;
    json_member_object(w, "tier");
    put_number(w, "serving", t->serving);
    put_number(w, "loading", t->loading);
    put_number(w, "refused", t->refused);
    put_number(w, "objects", t->objects);
    put_number(w, "bytes", t->bytes);
    put_number(w, "watches", t->watches);
    put_json_rate(w, r, "events_per_s", t->events_rate);
    put_json_rate(w, r, "watches_per_s", t->watches_rate);
    put_json_rate(w, r, "lists_per_s", t->lists_rate);
    put_json_rate(w, r, "gets_per_s", t->gets_rate);
    put_json_rate(w, r, "passed_on_per_s", t->passed_on_rate);
    put_json_rate(w, r, "unmirrored_per_s", t->unmirrored_rate);
    put_json_rate(w, r, "denied_per_s", t->denied_rate);
    put_json_rate(w, r, "reviews_per_s", t->reviews_rate);
    put_number(w, "review_p99_s", t->review_p99_s);
    put_number(w, "reviews_waiting", t->reviews_waiting);
    put_number(w, "reviews_failed", t->reviews_failed);
    put_json_rate(w, r, "own_calls_per_s", t->calls_rate);
    put_json_rate(w, r, "delayed_per_s", t->delayed_rate);
    put_number(w, "throttled", t->throttled);
    json_member_array(w, "collections");
    for (size_t i = 0; i < t->count; i++) {
        const struct tier_collection_report *c = &t->collections[i];
        json_begin_object(w);
        json_member_text(w, "name", c->name);
        json_member_text(w, "encoding", c->encoding);
        json_member_text(w, "phase", c->phase);
        json_member_text(w, "reason", c->reason);
        json_member_bool(w, "connected", c->connected);
        put_number(w, "objects", c->objects);
        put_number(w, "bytes", c->bytes);
        put_number(w, "lag_s", c->lag_s);
        put_number(w, "age_s", c->age_s);
        put_number(w, "fences", c->fences);
        put_json_rate(w, r, "events_per_s", c->events_rate);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

static void put_json_calls(struct json_writer *w, const struct top_report *r)
{
    json_member_array(w, "calls");
    for (size_t i = 0; i < r->call_count; i++) {
        json_begin_object(w);
        json_member_text(w, "method", r->calls[i].name);
        put_number(w, "per_s", r->is_first ? -1 : r->calls[i].rate);
        put_number(w, "failed_per_s", r->is_first ? -1 : r->calls[i].errors_rate);
        put_number(w, "total", r->calls[i].total);
        json_end_object(w);
    }
    json_end_array(w);
    json_member_array(w, "slowest_watchers");
    for (size_t i = 0; i < r->watcher_count; i++) {
        json_begin_object(w);
        json_member_text(w, "peer", r->watchers_behind[i].peer);
        put_number(w, "behind_revisions", r->watchers_behind[i].behind);
        put_number(w, "held_bytes", r->watchers_behind[i].held_bytes);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_json_prefixes(struct json_writer *w, const struct top_view *v)
{
    const struct prefix_count *largest[JSON_PREFIXES_MAX];
    if (!v->counts)
        return;
    double seconds = v->counted_s > 0 ? v->counted_s : 1;
    size_t found = prefix_counts_largest(v->counts, v->order, largest, COUNT_OF(largest));
    json_member_array(w, "prefixes");
    for (size_t i = 0; i < found; i++) {
        json_begin_object(w);
        decode_put_member(w, "prefix", DECODE_TEXT,
                          slice_of(largest[i]->name, largest[i]->name_len));
        put_number(w, "changes_per_s", (double)largest[i]->changes / seconds);
        put_number(w, "bytes_per_s", (double)largest[i]->bytes / seconds);
        put_number(w, "changes", (double)largest[i]->total);
        json_end_object(w);
    }
    json_end_array(w);
    if (*v->prefixes_error) {
        json_member_text(w, "prefixes_error", v->prefixes_error);
    }
}

void top_view_json(struct buf *to, const struct top_view *view, const struct top_report *report)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    put_number(&w, "time_s", (double)view->wall_ns / (double)NS_PER_S);
    json_member_text(&w, "endpoint", view->endpoint);
    put_json_status(&w, report);
    if (*view->metrics_error) {
        json_member_text(&w, "metrics_error", view->metrics_error);
    }
    put_json_figures(&w, report);
    put_json_front(&w, &report->front);
    put_json_tier(&w, report);
    if (!report->tier.is_tier) {
        put_json_calls(&w, report);
        put_json_prefixes(&w, view);
    }
    json_end_object(&w);
    xalloc_check(json_writer_finish(&w) == ST_OK ? to : NULL, to->len);
    PUT(to, "\n");
}
