#include "cmd/ctl/live/findings.h"

#include "base/xalloc.h"
#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/decode/terminal.h"
#include "codec/json/writer.h"

#include <stdarg.h>

void findings_fini(struct findings *findings)
{
    free(findings->all);
}

void findings_add(struct findings *findings, enum finding_level level, const char *what,
                  const char *advice, const char *format, ...)
{
    va_list args;
    if (findings->count == FINDINGS_MAX)
        return;
    findings->all = xrealloc(findings->all, (findings->count + 1) * sizeof(*findings->all));
    struct finding *finding = &findings->all[findings->count++];
    *finding = (struct finding){
        .level = level, .what = what, .advice = level == FINDING_GOOD ? NULL : advice};
    snprintf(finding->where, sizeof(finding->where), "%s", findings->where);
    va_start(args, format);
    vsnprintf(finding->text, sizeof(finding->text), format, args);
    va_end(args);
}

size_t findings_count(const struct findings *findings, enum finding_level level)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++)
        count += findings->all[i].level == level;
    return count;
}

/* -- Text -- */

static const char *const names[] = {"good", "warning", "bad"};
static const char *const colours_of[] = {TERMINAL_GREEN, TERMINAL_YELLOW, TERMINAL_RED};

static void write_one(const struct finding *finding, FILE *to, bool colours)
{
    fprintf(to, "%s%-7s%s  ", colours ? colours_of[finding->level] : "", names[finding->level],
            colours ? TERMINAL_PLAIN : "");
    safe_text_put(to, slice_from_text(finding->where), SAFE_ONE_LINE);
    fprintf(to, "  %s: ", finding->what);
    safe_text_put(to, slice_from_text(finding->text), SAFE_ONE_LINE);
    fputc('\n', to);
    if (finding->advice)
        fprintf(to, "         %s\n", finding->advice);
}

void findings_write(const struct findings *findings, FILE *to, bool colours)
{
    for (int level = FINDING_BAD; level >= FINDING_GOOD; level--)
        for (size_t i = 0; i < findings->count; i++)
            if (findings->all[i].level == (enum finding_level)level)
                write_one(&findings->all[i], to, colours);
    fprintf(to, "%zu bad, %zu warnings, %zu good\n", findings_count(findings, FINDING_BAD),
            findings_count(findings, FINDING_WARNING), findings_count(findings, FINDING_GOOD));
}

/* -- JSON -- */

void findings_write_json(const struct findings *findings, FILE *to)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_member_array(&w, "findings");
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->all[i];
        json_begin_object(&w);
        json_member_text(&w, "level", names[finding->level]);
        json_member_text(&w, "where", finding->where);
        json_member_text(&w, "what", finding->what);
        json_member_text(&w, "text", finding->text);
        if (finding->advice)
            json_member_text(&w, "advice", finding->advice);
        json_end_object(&w);
    }
    json_end_array(&w);
    json_member_u64(&w, "bad", findings_count(findings, FINDING_BAD));
    json_member_u64(&w, "warnings", findings_count(findings, FINDING_WARNING));
    json_end_object(&w);
    xalloc_check(json_writer_finish(&w) == ST_OK ? to : NULL, text.len);
    fprintf(to, "%.*s\n", SLICE_ARGS(buf_slice(&text)));
}
