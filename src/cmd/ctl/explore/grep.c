/* vigil grep: keys and values that match a pattern. */
#include "base/xalloc.h"
#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/explore/explore.h"
#include "cmd/ctl/explore/kv_view.h"
#include "cmd/ctl/explore/pager.h"

#include <inttypes.h>
#include <regex.h>

enum { LINE_COLUMNS_MAX = 200, LINES_SHOWN_MAX = 20, CONTEXT_BYTES = 60 };

struct grep {
    struct ctl *ctl;
    const struct grep_flags *flags;
    regex_t pattern;
    enum decode_kind decode;
    bool colours;
    struct buf text;  /* what is being compared, with a zero at its end */
    uint64_t matches; /* keys */
};

/* Zeros within the text are characters like others. */
static bool matches(struct grep *g, struct slice text, regmatch_t *ret_at)
{
    g->text.len = 0;
    xalloc_check(buf_append(&g->text, text) == ST_OK &&
                         buf_append(&g->text, slice_of("", 1)) == ST_OK
                     ? g
                     : NULL,
                 text.len);
    ret_at->rm_so = 0;
    ret_at->rm_eo = (regoff_t)text.len;
    return regexec(&g->pattern, (const char *)g->text.ptr, 1, ret_at, REG_STARTEND) == 0;
}

/* -- Output -- */

static void put_coloured(const struct grep *g, const char *colour, struct slice text)
{
    fputs(g->colours ? colour : "", g->ctl->out);
    safe_text_put_short(g->ctl->out, text, LINE_COLUMNS_MAX);
    fputs(g->colours ? TERMINAL_PLAIN : "", g->ctl->out);
}

/* A line with what matches; of a long one only what is around it. */
static void put_line(const struct grep *g, struct slice line, const regmatch_t *at)
{
    size_t begin = (size_t)at->rm_so, end = (size_t)at->rm_eo;
    size_t from = line.len > LINE_COLUMNS_MAX && begin > CONTEXT_BYTES ? begin - CONTEXT_BYTES : 0;
    while (from > 0 && (line.ptr[from] & 0xc0) == 0x80) /* not within a character */
        from--;
    fputs(from > 0 ? "…" : "", g->ctl->out);
    safe_text_put(g->ctl->out, slice_sub(line, from, begin - from), SAFE_ONE_LINE);
    put_coloured(g, TERMINAL_BOLD TERMINAL_RED, slice_sub(line, begin, end - begin));
    safe_text_put_short(g->ctl->out, slice_sub(line, end, line.len - end), LINE_COLUMNS_MAX);
    fputc('\n', g->ctl->out);
}

/* -- Matching -- */

/* Shows the lines that match, or only finds whether one does. */
static bool grep_lines(struct grep *g, const vigil_kv *kv, bool shows)
{
    struct arena arena;
    struct decoded decoded;
    regmatch_t at;
    unsigned shown = 0;
    decode_arena_init(&arena);
    decode_value(&arena, g->decode, slice_of(kv->value.data, kv->value.size), &decoded);
    struct slice rest = decoded.text;
    bool found = false, more = false;
    while (rest.len && !(found && !shows) && !more) {
        struct slice line = slice_cut(&rest, '\n');
        if (!matches(g, line, &at))
            continue;
        found = true;
        more = shows && shown++ == LINES_SHOWN_MAX;
        if (shows) {
            put_coloured(g, TERMINAL_CYAN, slice_of(kv->key.data, kv->key.size));
            fputs(more ? ": … more lines match\n" : ": ", g->ctl->out);
            if (!more)
                put_line(g, line, &at);
        }
    }
    arena_fini(&arena);
    return found;
}

/* An empty value has no lines. */
static bool value_matches(struct grep *g, const vigil_kv *kv)
{
    regmatch_t at;
    if (kv->value.size == 0)
        return matches(g, SLICE_EMPTY, &at);
    return grep_lines(g, kv, false);
}

static void show_match(struct grep *g, const vigil_kv *kv, bool by_key)
{
    bool lines = !by_key && !g->flags->list && !g->flags->invert && kv->value.size > 0;
    g->matches++;
    if (g->flags->count)
        return;
    if (g->ctl->globals.format == CTL_JSON || g->ctl->globals.format == CTL_JSONL) {
        AUTO(buf_fini) struct buf line = {0};
        struct json_writer w;
        json_writer_init(&w, &line);
        json_begin_object(&w);
        kv_view_put_members(&w, (enum decode_kind)g->ctl->globals.decode, kv);
        json_end_object(&w);
        kv_view_put_line(g->ctl->out, &w);
    } else if (lines) {
        (void)grep_lines(g, kv, true);
    } else {
        put_coloured(g, TERMINAL_CYAN, slice_of(kv->key.data, kv->key.size));
        fputc('\n', g->ctl->out);
    }
}

static int search(struct grep *g, vigil_client *client, struct slice prefix)
{
    bool json = g->ctl->globals.format == CTL_JSON || g->ctl->globals.format == CTL_JSONL;
    struct pager_options options = {
        .prefix = prefix,
        .revision = g->flags->revision,
        .keys_only = g->flags->keys_only && (g->flags->count || !json),
    };
    AUTO(pager_fini) struct pager pager;
    const vigil_kv *kv;
    pager_init(&pager, g->ctl, client, &options);
    while ((kv = pager_next(&pager))) {
        regmatch_t at;
        bool by_key =
            !g->flags->values_only && matches(g, slice_of(kv->key.data, kv->key.size), &at);
        bool by_value = !by_key && !g->flags->keys_only && value_matches(g, kv);
        if ((by_key || by_value) != g->flags->invert)
            show_match(g, kv, by_key);
    }
    if (pager.exit == CTL_OK && g->flags->count)
        fprintf(g->ctl->out, "%" PRIu64 "\n", g->matches);
    return pager.exit;
}

/* -- The command -- */

static int compile(struct ctl *ctl, const struct grep_flags *flags, regex_t *ret_pattern)
{
    int code =
        regcomp(ret_pattern, ctl->words[0], REG_EXTENDED | (flags->ignore_case ? REG_ICASE : 0));
    if (code == 0)
        return CTL_OK;
    char text[128];
    regerror(code, ret_pattern, text, sizeof(text));
    return ctl_refuse(ctl, "the pattern is not an extended regular expression: %s", text);
}

int explore_grep(struct ctl *ctl)
{
    const struct grep_flags *flags = ctl->flags;
    enum decode_kind decode = decode_resolve((enum decode_kind)ctl->globals.decode, true);
    struct grep g = {.ctl = ctl,
                     .flags = flags,
                     .decode = decode == DECODE_RAW ? DECODE_TEXT : decode,
                     .colours = terminal_has_colours(ctl->out, ctl->globals.colour)};
    if (flags->keys_only && flags->values_only)
        return ctl_refuse(ctl, "--keys-only and --values-only exclude each other");
    int exit = compile(ctl, flags, &g.pattern);
    if (exit != CTL_OK)
        return exit;
    vigil_client *client = explore_client(ctl, &exit);
    if (client)
        exit = search(&g, client, slice_from_text(ctl->word_count > 1 ? ctl->words[1] : ""));
    regfree(&g.pattern);
    buf_fini(&g.text);
    if (exit != CTL_OK)
        return explore_failure(exit);
    return g.matches > 0 ? EXPLORE_FOUND : EXPLORE_NOT_FOUND;
}
