#include "cel/value/name.h"

enum { LONGEST = 15 }; /* "__underscores__", for two bytes */

static const struct {
    const char *text, *word;
} escapes[] = {{"__", "underscores"}, {".", "dot"}, {"-", "dash"}, {"/", "slash"}};

static bool is_reserved(struct slice name)
{
    static const char *const reserved[] = {
        "true",   "false", "null",     "in",        "as",     "break", "const",
        "else",   "for",   "function", "if",        "import", "let",   "continue",
        "return", "loop",  "package",  "namespace", "var",    "void",  "while",
    };
    for (size_t i = 0; i < COUNT_OF(reserved); i++)
        if (slice_is(name, reserved[i]))
            return true;
    return false;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_plain(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static struct slice from(struct slice text, size_t at)
{
    return slice_sub(text, at, text.len - at);
}

static uint8_t *put(uint8_t *to, const char *text)
{
    struct slice bytes = slice_from_text(text);
    slice_copy(to, bytes);
    return to + bytes.len;
}

/* The number of the escape for what begins here; COUNT_OF(escapes): none. */
static size_t find_escape(struct slice rest)
{
    for (size_t i = 0; i < COUNT_OF(escapes); i++)
        if (slice_has_prefix(rest, slice_from_text(escapes[i].text)))
            return i;
    return COUNT_OF(escapes);
}

static enum status escape(struct arena *arena, struct slice name, struct slice *ret_escaped)
{
    uint8_t *escaped = arena_alloc(arena, (name.len + 1) * LONGEST), *end = escaped;
    if (!escaped)
        return ST_NOMEM;
    for (size_t i = 0; i < name.len;) {
        size_t found = find_escape(from(name, i));
        if (found < COUNT_OF(escapes)) {
            end = put(put(put(end, "__"), escapes[found].word), "__");
            i += strlen(escapes[found].text);
        } else {
            *end++ = name.ptr[i++];
        }
    }
    *ret_escaped = slice_of(escaped, (size_t)(end - escaped));
    return ST_OK;
}

enum status cel_name_escape(struct arena *arena, struct slice name, struct slice *ret_escaped)
{
    bool needs = false;
    if (!name.len || is_digit(name.ptr[0]))
        return ST_INVALID;
    if (is_reserved(name)) {
        uint8_t *escaped = arena_alloc(arena, name.len + 4);
        if (!escaped)
            return ST_NOMEM;
        slice_copy(put(escaped, "__"), name);
        (void)put(escaped + 2 + name.len, "__");
        *ret_escaped = slice_of(escaped, name.len + 4);
        return ST_OK;
    }
    for (size_t i = 0; i < name.len; i++) {
        bool escapes_here = find_escape(from(name, i)) < COUNT_OF(escapes);
        if (!escapes_here && !is_plain(name.ptr[i]))
            return ST_INVALID;
        needs |= escapes_here;
    }
    if (needs)
        return escape(arena, name, ret_escaped);
    *ret_escaped = name;
    return ST_OK;
}

/* The word of "__word__" at the beginning; empty: there is none. */
static struct slice find_word(struct slice rest)
{
    size_t end = 2;
    if (!slice_has_prefix(rest, SLICE_LITERAL("__")))
        return SLICE_EMPTY;
    while (end < rest.len && rest.ptr[end] != '_')
        end++;
    if (end == 2 || !slice_has_prefix(from(rest, end), SLICE_LITERAL("__")))
        return SLICE_EMPTY;
    return slice_sub(rest, 2, end - 2);
}

/* NULL: there is no such escape. */
static const char *text_of(struct slice word)
{
    for (size_t i = 0; i < COUNT_OF(escapes); i++)
        if (slice_is(word, escapes[i].word))
            return escapes[i].text;
    return NULL;
}

enum status cel_name_unescape(struct arena *arena, struct slice escaped, struct slice *ret_name)
{
    uint8_t *name = NULL;
    size_t len = 0;
    for (size_t i = 0; i < escaped.len;) {
        struct slice word = find_word(from(escaped, i));
        if (!word.len) {
            if (name)
                name[len++] = escaped.ptr[i];
            i++;
            continue;
        }
        if (word.len + 4 == escaped.len && is_reserved(word)) {
            *ret_name = word;
            return ST_OK;
        }
        const char *text = text_of(word);
        if (!text)
            return ST_INVALID;
        if (!name) {
            name = arena_alloc(arena, escaped.len);
            if (!name)
                return ST_NOMEM;
            slice_copy(name, slice_sub(escaped, 0, i));
            len = i;
        }
        len = (size_t)(put(name + len, text) - name);
        i += word.len + 4;
    }
    *ret_name = name ? slice_of(name, len) : escaped;
    return ST_OK;
}
