/*
 * The command watch: one range until the program ends, or several that lines of standard input
 * begin.
 *
 * What arrives is shown as etcdctl does, and a command may be run for each event.
 */
#include "cmd/ctl/kv/kv.h"

#include "base/options/words.h"
#include "base/xalloc.h"
#include "cmd/ctl/globals.h"
#include "cmd/ctl/kv/child.h"
#include "cmd/ctl/kv/watch_print.h"
#include "cmd/ctl/kv/words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_KEY "bad number of arguments"
#define CONFLICT "bad number of arguments (found conflicting environment key)"
#define NO_COMMAND "bad number of arguments (found separator --, but no commands)"

/* All watches of this run. */
struct watching {
    struct ctl *ctl;
    vigil_client *client;
    const char *key, *end; /* ETCDCTL_WATCH_KEY and _RANGE_END; NULL: not given */
    struct watched *newest;
    int exit_code;
    bool ended;
};

/* One of them. */
struct watched {
    struct watching *all;
    struct watched *next;     /* older */
    vigil_watch *watch;       /* owned */
    const char *const *words; /* the command for each event; count is 0 if there is none */
    size_t count;
};

/* -- the command for each event -- */

static int refuse_words(struct ctl *ctl, const char *text)
{
    bool is_plain = !ctl_is_etcdctl(ctl) && strcmp(text, NO_KEY) == 0;
    return ctl_refuse(ctl, "%s", is_plain ? "watch needs a key, or a prefix and --prefix" : text);
}

static const char *variable(struct ctl *ctl, const char *name, const char *text, vigil_bytes bytes)
{
    char *line = NULL;
    size_t len;
    FILE *to = open_memstream(&line, &len);
    xalloc_check(to, 1);
    fprintf(to, "%s=", name);
    ctl_write_quoted(to, text ? slice_from_text(text) : slice_of(bytes.data, bytes.size));
    fclose(to);
    struct slice copy;
    enum status status = arena_dup(ctl->arena, slice_of(line, len + 1), &copy);
    free(line);
    return xalloc_check(status == ST_OK ? (void *)copy.ptr : NULL, len);
}

static int run_command(const struct watched *watched, const vigil_header *header,
                       const vigil_event *event)
{
    struct ctl *ctl = watched->all->ctl;
    char revision[64], reason[CHILD_REASON_BYTES];
    static const vigil_bytes none;
    snprintf(revision, sizeof(revision), "ETCD_WATCH_REVISION=%" PRId64, header->revision);
    struct child_variables variables = {{
        revision,
        variable(ctl, "ETCD_WATCH_EVENT_TYPE", event->type == VIGIL_DELETE ? "DELETE" : "PUT",
                 none),
        variable(ctl, "ETCD_WATCH_KEY", NULL, event->kv->key),
        variable(ctl, "ETCD_WATCH_VALUE", NULL, event->kv->value),
    }};
    int status = 0;
    pid_t pid = child_start(watched->words, watched->count, &variables, reason);
    if (pid > 0) {
        /* The next event waits for the command, as in etcdctl. */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        if (child_exit_code(status, reason) == 0)
            return CTL_OK;
    }
    fputs("command [", stderr);
    for (size_t i = 0; i < watched->count; i++) {
        if (i)
            fputc(' ', stderr);
        ctl_write_quoted(stderr, slice_from_text(watched->words[i]));
    }
    fprintf(stderr, "] error (%s)\n", reason);
    return CTL_ERROR;
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct watched *watched = user;
    struct watching *all = watched->all;
    (void)watch;
    int code = watch_print(all->ctl, batch);
    for (size_t i = 0; code == CTL_OK && watched->count && i < batch->event_count; i++)
        code = run_command(watched, batch->header, &batch->events[i]);
    if (code != CTL_OK)
        all->exit_code = code;
    if (batch->what == VIGIL_WATCH_ENDED)
        all->ended = true;
    return VIGIL_WATCH_CONTINUE;
}

/* -- beginning a watch -- */

/* What the words of a command or line say. */
struct target {
    const char *words[2]; /* key and end */
    size_t word_count;
    const char *const *command;
    size_t command_count;
};

/* Returns what is wrong with the words, or NULL. */
static const char *find_target(const struct watching *all, const char *const *words, size_t count,
                               size_t dash, struct target *ret_target)
{
    size_t before = dash == SIZE_MAX ? count : dash;
    *ret_target = (struct target){.command = words + before, .command_count = count - before};
    if (dash != SIZE_MAX && dash == count)
        return NO_COMMAND;
    if (all->key && before)
        return CONFLICT;
    if (all->key) {
        ret_target->words[ret_target->word_count++] = all->key;
        if (all->end)
            ret_target->words[ret_target->word_count++] = all->end;
        return NULL;
    }
    ret_target->word_count = before;
    for (size_t i = 0; i < before && i < COUNT_OF(ret_target->words); i++)
        ret_target->words[i] = words[i];
    return before ? NULL : NO_KEY;
}

/* Returns what is wrong, or NULL. */
static const char *begin(struct watching *all, const struct target *target,
                         const struct watch_flags *flags)
{
    if (target->word_count == 2 && flags->prefix)
        return "`range_end` and `--prefix` are mutually exclusive";
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text(target->words[0]);
    options.range_end = vigil_text(target->word_count == 2 ? target->words[1] : "");
    options.prefix = flags->prefix;
    /* With an empty prefix all keys are watched, from the zero byte on. */
    if (flags->prefix && !*target->words[0]) {
        options.prefix = 0;
        options.key = options.range_end = vigil_bytes_of("", 1);
    }
    options.revision = flags->revision;
    options.prev_kv =
        flags->prev_kv || (watch_shows_changes(all->ctl) && all->ctl->globals.format == CTL_SIMPLE);
    options.progress_notify = flags->progress_notify;
    /* etcdctl ends the watch, too, when the cluster loses its leader. */
    options.require_leader = 1;
    /* A batch is printed as one response, so it must not arrive in parts. */
    options.no_fragment = 1;
    struct watched *watched =
        xalloc_check(arena_alloc(all->ctl->arena, sizeof(*watched)), sizeof(*watched));
    *watched = (struct watched){
        .all = all, .next = all->newest, .words = target->command, .count = target->command_count};
    if (vigil_watch_new(all->client, &options, on_batch, watched, &watched->watch) != VIGIL_OK)
        return "the watch cannot be created";
    all->newest = watched;
    return NULL;
}

/* -- lines of standard input -- */

static int begin_line(struct watching *all, const char *line, struct line_words *split)
{
    struct ctl *ctl = all->ctl;
    struct options *options =
        xalloc_check(arena_alloc(ctl->arena, sizeof(*options)), sizeof(*options));
    const char **memory =
        xalloc_check(arena_alloc(ctl->arena, split->count * sizeof(*memory)), split->count);
    struct option_words words = {.words = memory};
    struct watch_flags flags = {0};
    struct target target;
    struct error error;
    options_init(options, ctl_own_table(ctl->command, ctl->style, ctl->arena), &flags);
    if (options_parse_words(options, (int)split->count - 1,
                            (char *const *)(uintptr_t)(split->words + 1), &words, &error) != ST_OK)
        return ctl_refuse(ctl, "%s", error.text);
    const char *wrong = find_target(all, words.words, words.count, words.dash, &target);
    if (wrong)
        return refuse_words(ctl, wrong);
    wrong = begin(all, &target, &flags);
    if (wrong)
        fprintf(stderr, "Invalid command %s (%s)\n", line, wrong);
    return CTL_OK;
}

static int take_line(struct watching *all, const char *line)
{
    struct ctl *ctl = all->ctl;
    struct line_words *split =
        xalloc_check(arena_alloc(ctl->arena, sizeof(*split)), sizeof(*split));
    if (!line_split(ctl->arena, slice_from_text(line), split))
        return ctl_fail(ctl, CTL_INVALID_INPUT, "the quotes of this line are wrong: %s", line);
    if (split->count == 0) {
        fprintf(stderr, "Invalid command: %s (watch and progress supported)\n", line);
    } else if (strcmp(split->words[0], "progress") == 0) {
        if (all->newest)
            vigil_watch_request_progress(all->newest->watch);
    } else if (strcmp(split->words[0], "watch") != 0) {
        fprintf(stderr, "Invalid command %s (only support watch)\n", line);
    } else if (split->count < 2 && !all->key) {
        fprintf(stderr, "Invalid command %s (command type or key is not provided)\n", line);
    } else {
        return begin_line(all, line, split);
    }
    return CTL_OK;
}

static int take_lines(struct watching *all, struct buf *input)
{
    for (;;) {
        /* The rest of the line has not arrived yet. */
        uint8_t *end = memchr(input->ptr, '\n', input->len);
        if (!end)
            return CTL_OK;
        *end = 0;
        int code = take_line(all, (const char *)input->ptr);
        if (code != CTL_OK)
            return code;
        buf_consume(input, (size_t)(end - input->ptr) + 1);
    }
}

enum { READ_BYTES = 4096, INPUT_BYTES_MAX = 1 << 20 };

/* The descriptor is readable, or at its end. */
static int read_input(struct watching *all, struct buf *input)
{
    xalloc_check(buf_reserve(input, READ_BYTES) == ST_OK ? input->ptr : NULL, READ_BYTES);
    ssize_t n = read(STDIN_FILENO, input->ptr + input->len, READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return CTL_OK;
    if (n <= 0 || input->len > INPUT_BYTES_MAX)
        return ctl_fail(all->ctl, CTL_INVALID_INPUT,
                        all->ctl->style == CTL_ETCDCTL_3_4
                            ? "Error reading watch request line: EOF"
                            : "error reading watch request line: EOF");
    input->len += (size_t)n;
    return take_lines(all, input);
}

static int run_interactive(struct watching *all)
{
    AUTO(buf_fini) struct buf input = {0};
    int code;
    all->client = ctl_client(all->ctl, &code);
    if (!all->client)
        return code;
    /* Watches must continue to deliver while no line is typed. */
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    while (code == CTL_OK) {
        ctl_wait_for(all->client, STDIN_FILENO, -1);
        if (all->exit_code != CTL_OK)
            return all->exit_code;
        code = read_input(all, &input);
    }
    return code;
}

/* -- the command -- */

static int run_one(struct watching *all)
{
    struct ctl *ctl = all->ctl;
    struct target target;
    const char *wrong =
        find_target(all, ctl->words, ctl->word_count, ctl->words_before_dash, &target);
    if (wrong)
        return refuse_words(ctl, wrong);
    int code;
    all->client = ctl_client(ctl, &code);
    if (!all->client)
        return code;
    wrong = begin(all, &target, ctl->flags);
    if (wrong)
        return refuse_words(ctl, wrong);
    while (!all->ended && all->exit_code == CTL_OK)
        ctl_wait(all->client, -1);
    return all->exit_code != CTL_OK
               ? all->exit_code
               : ctl_fail(ctl, CTL_INTERRUPTED, "watch is canceled by the server");
}

static const char *given(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

int watch_run(struct ctl *ctl)
{
    const struct watch_flags *flags = ctl->flags;
    struct watching all = {
        .ctl = ctl,
        .key = given("ETCDCTL_WATCH_KEY"),
        .end = given("ETCDCTL_WATCH_RANGE_END"),
    };
    if (!all.key && all.end)
        return ctl_refuse(ctl, "ETCDCTL_WATCH_KEY is empty but got ETCDCTL_WATCH_RANGE_END=\"%s\"",
                          all.end);
    int code = flags->interactive ? run_interactive(&all) : run_one(&all);
    for (struct watched *watched = all.newest; watched; watched = watched->next)
        vigil_watch_free(watched->watch);
    return code;
}
