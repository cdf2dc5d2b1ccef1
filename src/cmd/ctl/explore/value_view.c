#include "cmd/ctl/explore/value_view.h"

#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/decode/terminal.h"

#include <inttypes.h>

void value_view_init(struct value_view *view, const struct ctl *ctl, unsigned indent)
{
    enum decode_kind decode = decode_resolve((enum decode_kind)ctl->globals.decode, true);
    *view = (struct value_view){
        .to = ctl->out,
        .decode = decode == DECODE_RAW ? DECODE_TEXT : decode,
        .colours = terminal_has_colours(ctl->out, ctl->globals.colour),
        .indent = indent,
        .lines_max = VALUE_VIEW_LINES_DEFAULT,
    };
}

void value_view_colour(const struct value_view *view, const char *colour)
{
    fputs(view->colours ? colour : "", view->to);
}

/* -- Lines -- */

static void put_line(void *ctx, enum line_sign sign, struct slice line)
{
    struct value_view *view = ctx;
    if (view->lines_max && view->shown++ >= view->lines_max)
        return;
    fprintf(view->to, "%*s", (int)view->indent, "");
    bool coloured = sign != LINE_SAME;
    if (coloured)
        value_view_colour(view, sign == LINE_ADDED     ? TERMINAL_GREEN
                                : sign == LINE_REMOVED ? TERMINAL_RED
                                                       : TERMINAL_DIM);
    if (sign == LINE_SKIPPED) {
        fputs("  …", view->to);
    } else {
        fprintf(view->to, "%c ", sign);
        safe_text_put_short(view->to, line, VALUE_VIEW_COLUMNS_MAX);
    }
    if (coloured)
        value_view_colour(view, TERMINAL_PLAIN);
    fputc('\n', view->to);
}

static void finish(struct value_view *view)
{
    if (view->lines_max && view->shown > view->lines_max)
        fprintf(view->to, "%*s… %" PRIu64 " more lines\n", (int)view->indent, "",
                view->shown - view->lines_max);
    view->shown = 0;
}

static void put_note(struct value_view *view, const char *text)
{
    fprintf(view->to, "%*s", (int)view->indent, "");
    value_view_colour(view, TERMINAL_DIM);
    fputs(text, view->to);
    value_view_colour(view, TERMINAL_PLAIN);
    fputc('\n', view->to);
}

void value_view_put(struct value_view *view, enum line_sign sign, struct slice value)
{
    struct arena arena;
    struct decoded decoded;
    decode_arena_init(&arena);
    decode_value(&arena, view->decode, value, &decoded);
    struct slice rest = decoded.text;
    while (rest.len)
        put_line(view, sign, slice_cut(&rest, '\n'));
    finish(view);
    arena_fini(&arena);
}

void value_view_difference(struct value_view *view, struct slice before, struct slice after)
{
    struct arena arena;
    struct decoded old, now;
    struct line_diff diff = {.context = VALUE_VIEW_CONTEXT, .fn = put_line, .ctx = view};
    if (slice_equal(before, after)) {
        put_note(view, "(the same value)");
        return;
    }
    decode_arena_init(&arena);
    decode_value(&arena, view->decode, before, &old);
    decode_value(&arena, view->decode, after, &now);
    if (line_diff(&diff, old.text, now.text) != ST_OK)
        put_note(view, "(the difference cannot be shown: out of memory)");
    else if (view->shown == 0)
        put_note(view, "(only the form of the value has changed)");
    finish(view);
    arena_fini(&arena);
}
