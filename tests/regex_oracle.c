/*
 * Answers requests for tests/kube/regexoracle, which compares our regular expressions with Go's:
 * 'm' with a pattern and a text. The answer is whether the text matches and the places of all
 * matches, or why the pattern is invalid.
 */
#include "base/buf.h"
#include "codec/utf8.h"
#include "oracle.h"
#include "regex/regex.h"

enum { ARENA_BYTES_MAX = 256 << 20 };

/* All matches behind each other, as Go's FindAllStringIndex. */
static void find_all(struct arena *arena, const struct regex *regex, struct slice text,
                     struct buf *out)
{
    struct regex_scratch scratch = {.arena = arena};
    int64_t steps = INT64_MAX;
    size_t from = 0, begin, end, last_end = SIZE_MAX;
    while (from <= text.len &&
           regex_find(regex, text, from, &scratch, &steps, &begin, &end) == REGEX_MATCH) {
        char place[64];
        bool follows = end == from && begin == last_end;
        int len = snprintf(place, sizeof(place), " %zu-%zu", begin, end);
        size_t width = from < text.len ? utf8_char_len(slice_sub(text, from, text.len - from)) : 1;
        from = end == from ? from + size_max(width, 1) : end;
        last_end = end;
        if (!follows && buf_append(out, slice_of(place, (size_t)len)) != ST_OK)
            oracle_fail("no memory");
    }
}

int main(void)
{
    int letter;
    while ((letter = getchar()) != EOF) {
        struct arena arena;
        struct buf out = {0};
        struct error error = {0};
        const struct regex *regex;
        int64_t steps = INT64_MAX;
        arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
        if (letter != 'm')
            oracle_fail("unknown request");
        struct slice pattern = oracle_read(&arena), text = oracle_read(&arena);
        enum status status = regex_compile(&arena, pattern, &regex, &error);
        if (status == ST_OK) {
            struct regex_scratch scratch = {.arena = &arena};
            bool matches = regex_match(regex, text, &scratch, &steps) == REGEX_MATCH;
            if (buf_append_text(&out, matches ? "yes" : "no") != ST_OK)
                oracle_fail("no memory");
            find_all(&arena, regex, text, &out);
        }
        oracle_answer(status == ST_OK ? '+' : '-',
                      status == ST_OK ? buf_slice(&out) : slice_from_text(error.text));
        buf_fini(&out);
        arena_fini(&arena);
    }
    return 0;
}
