/* vigil top: what a server is doing, as it does it. */
#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/live/live.h"
#include "cmd/ctl/live/screen.h"
#include "cmd/ctl/live/top_server.h"
#include "cmd/ctl/live/top_view.h"

#include <stdlib.h>
#include <unistd.h>

enum { WAIT_MS = 50, WAIT_SEVERAL_MS = 5, ROWS_PLAIN = 60, PREFIX_ORDERS = 3 };

/*
 * Every interval the status and the metrics of all servers are read, all at the same time, while
 * keys are read from the terminal and changes of keys arrive. The first reading has no rates, so it
 * is shown on a screen only. All members have the same keys, so only the first server is watched.
 */
struct top {
    struct ctl *ctl;
    const struct top_flags *flags;
    struct top_server *servers; /* owned */
    size_t count, shown;        /* shown: of which the details are on the screen */
    vigil_error prefixes_error;
    vigil_watch *watch;
    struct prefix_counts counts;
    int64_t counted_since_ns;
    enum prefix_order order;
    bool on_screen, quits;
    struct buf text;
};

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_system());
}

/* -- Changes of keys -- */

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct top *top = user;
    (void)watch;
    if (batch->what == VIGIL_WATCH_ENDED)
        top->prefixes_error = *batch->error;
    for (size_t i = 0; i < batch->event_count; i++) {
        const vigil_kv *kv = batch->events[i].kv;
        prefix_counts_add(&top->counts, slice_of(kv->key.data, kv->key.size),
                          kv->key.size + kv->value.size);
    }
    return VIGIL_WATCH_CONTINUE;
}

static void start_watch(struct top *top)
{
    vigil_watch_options options;
    const char *prefix = top->ctl->word_count > 0 ? top->ctl->words[0] : "";
    vigil_watch_options_init(&options);
    options.key = vigil_text(prefix);
    options.prefix = 1;
    if (!*prefix) {
        options.prefix = 0;
        options.key = options.range_end = vigil_bytes_of("", 1);
    }
    top->counted_since_ns = now_ns();
    if (!top->flags->no_prefixes)
        top->prefixes_error.code =
            vigil_watch_new(top->servers[0].client, &options, on_batch, top, &top->watch);
}

/* -- Reading -- */

static bool is_read(const struct top *top)
{
    for (size_t i = 0; i < top->count; i++)
        if (!top_server_is_read(&top->servers[i]))
            return false;
    return true;
}

/* -- Showing -- */

static void add_text(struct top *top, const struct top_view *view)
{
    struct top_report report;
    struct buf *text = &top->text;
    double wall_s = (double)view->wall_ns / (double)NS_PER_S;
    for (size_t i = 0; i < top->count && top->count > 1; i++) {
        top_server_report(&top->servers[i], wall_s, &report);
        top_view_server(text, i, i == top->shown, top->servers[i].endpoint, &report);
    }
    top_server_report(&top->servers[top->shown], wall_s, &report);
    top_view_text(text, view, &report);
}

/* One object for each server; the prefixes are in the first. */
static void add_json(struct top *top, struct top_view *view)
{
    struct top_report report;
    for (size_t i = 0; i < top->count; i++) {
        top_server_report(&top->servers[i], (double)view->wall_ns / (double)NS_PER_S, &report);
        view->endpoint = top->servers[i].endpoint;
        view->metrics_error = top->servers[i].metrics_error.text;
        top_view_json(&top->text, view, &report);
        view->counts = NULL;
    }
}

static void show(struct top *top)
{
    bool json = top->ctl->globals.format == CTL_JSON || top->ctl->globals.format == CTL_JSONL;
    unsigned rows = top->on_screen ? screen_rows() : ROWS_PLAIN;
    unsigned above = top->count > 1 ? (unsigned)top->count + 1 : 0;
    struct top_view view = {
        .endpoint = top->servers[top->shown].endpoint,
        .metrics_error = top->servers[top->shown].metrics_error.text,
        .prefixes_error = top->prefixes_error.code ? top->prefixes_error.text : "",
        .counts = top->flags->no_prefixes ? NULL : &top->counts,
        .order = top->order,
        .counted_s = (double)(now_ns() - top->counted_since_ns) / (double)NS_PER_S,
        .rows = rows > above ? rows - above : 0,
        .wall_ns = clock_real_ns(clock_system()),
    };
    top->text.len = 0;
    if (json)
        add_json(top, &view);
    else
        add_text(top, &view);
}

static void draw(struct top *top)
{
    show(top);
    if (top->on_screen) {
        screen_draw(buf_slice(&top->text));
    } else {
        /* Without a screen, headings are lines like others. */
        for (size_t i = 0; i < top->text.len; i++)
            if (top->text.ptr[i] != SCREEN_HEADING[0])
                fputc(top->text.ptr[i], top->ctl->out);
        fflush(top->ctl->out);
    }
}

static void next_period(struct top *top)
{
    prefix_counts_next(&top->counts);
    top->counted_since_ns = now_ns();
}

/* -- The loop -- */

static void take_key(struct top *top, char key)
{
    switch (key) {
    case 'q':
    case 'Q':
        top->quits = true;
        return;
    case 's':
    case 'S':
        top->order = (enum prefix_order)((top->order + 1) % PREFIX_ORDERS);
        break;
    case '\t':
    case 'n':
        top->shown = (top->shown + 1) % top->count;
        break;
    default:
        return;
    }
    draw(top);
}

/* Waits for the first server, and looks whether the others have something. */
static bool wait_a_while(struct top *top, bool reading)
{
    int wait_ms = reading && top->count > 1 ? WAIT_SEVERAL_MS : WAIT_MS;
    vigil_client *client = top->servers[0].client;
    bool goes_on =
        top->on_screen ? ctl_wait_for(client, STDIN_FILENO, wait_ms) : ctl_wait(client, wait_ms);
    for (size_t i = 1; i < top->count; i++)
        vigil_client_process(top->servers[i].client);
    return goes_on;
}

/* Returns at the time, or once all servers were read if that is enough. */
static void wait_until(struct top *top, int64_t deadline_ns, bool only_read)
{
    while (!top->quits && now_ns() < deadline_ns && !(only_read && is_read(top))) {
        top->quits = !wait_a_while(top, only_read);
        char key;
        while (top->on_screen && (key = screen_key()))
            take_key(top, key);
    }
}

static bool read_once(struct top *top)
{
    /* One of several that does not answer must not stop the screen. */
    int64_t limit_ns = top->on_screen && top->count > 1
                           ? NS_PER_S
                           : top->ctl->globals.command_timeout_ns + NS_PER_S;
    for (size_t i = 0; i < top->count; i++)
        top_server_start(&top->servers[i]);
    wait_until(top, now_ns() + limit_ns, true);
    for (size_t i = 0; i < top->count && !top->quits; i++)
        top_server_take(&top->servers[i]);
    return !top->quits;
}

static bool has_failed(const struct top *top)
{
    for (size_t i = 0; i < top->count; i++)
        if (!top_server_has_failed(&top->servers[i]))
            return false;
    return true;
}

static int run(struct top *top)
{
    int64_t left = top->flags->once ? 1 : top->flags->count;
    bool counts = left > 0;
    if (!read_once(top))
        return CTL_OK;
    /* On a screen the server may appear later. A script must learn of the failure. */
    if (has_failed(top) && !top->on_screen)
        return ctl_fail(top->ctl, CTL_BAD_CONNECTION, "%s", top->servers[0].status.error);
    if (top->on_screen)
        draw(top);
    next_period(top);
    while (!top->quits && !(counts && left-- == 0)) {
        int64_t next_ns = now_ns() + top->flags->interval_ns;
        wait_until(top, next_ns, false);
        if (!top->quits && read_once(top))
            draw(top);
        next_period(top);
    }
    return CTL_OK;
}

static void top_fini(struct top *top)
{
    screen_close();
    vigil_watch_free(top->watch);
    for (size_t i = 0; i < top->count; i++)
        top_server_fini(&top->servers[i]);
    free(top->servers);
    prefix_counts_fini(&top->counts);
    buf_fini(&top->text);
}

static int open_servers(struct top *top)
{
    struct ctl_endpoints endpoints = ctl_endpoints(top->ctl);
    int exit = CTL_OK;
    if (endpoints.count == 0)
        return ctl_refuse(top->ctl, "top needs an endpoint");
    if (endpoints.count > TOP_SERVERS_MAX)
        return ctl_refuse(top->ctl, "top shows at most %d endpoints", TOP_SERVERS_MAX);
    top->servers = xcalloc(endpoints.count, sizeof(*top->servers));
    for (size_t i = 0; i < endpoints.count && exit == CTL_OK; i++) {
        top->count++;
        (void)top_server_init(&top->servers[i], top->ctl, endpoints.texts[i], &exit);
    }
    return exit;
}

int live_top(struct ctl *ctl)
{
    const struct top_flags *flags = ctl->flags;
    AUTO(top_fini)
    struct top top = {.ctl = ctl, .flags = flags, .order = (enum prefix_order)flags->sort};
    prefix_counts_init(&top.counts, slice_from_text(*flags->separator ? flags->separator : "/"),
                       (unsigned)flags->depth);
    int exit = open_servers(&top);
    if (exit != CTL_OK)
        return exit;
    /* Before the screen is opened: a signal must not leave the terminal in its mode. */
    ctl_catch_signals();
    if (!flags->once && !flags->count && ctl->globals.format == CTL_SIMPLE)
        top.on_screen = screen_open(ctl->out);
    start_watch(&top);
    return run(&top);
}
