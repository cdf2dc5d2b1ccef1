#include "yaml/yaml.h"

#include "codec/json/writer.h"

#include <stdlib.h>
#include <strings.h>

/* -- Texts -- */

static bool is_plain_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-./", c));
}

/* A word that some YAML readers take for another type. */
static bool is_word(struct slice text)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n"};
    if (text.len == 0)
        return true;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strlen(words[i]) == text.len &&
            !strncasecmp(words[i], (const char *)text.ptr, text.len))
            return true;
    return false;
}

/* Begins with a letter or a slash, and so is not a number, a date or a YAML indicator. */
static bool is_plain(struct slice text)
{
    if (is_word(text) || !(text.ptr[0] == '/' || (text.ptr[0] | 0x20) >= 'a'))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_plain_byte(text.ptr[i]))
            return false;
    return true;
}

/*
 * Whether a character that JSON allows unescaped must be escaped in YAML, because readers would
 * refuse it or take it for a line break. Returns its length in bytes, or 0.
 */
static size_t special_at(struct slice text, size_t at, unsigned *ret_rune)
{
    const uint8_t *c = text.ptr + at;
    size_t left = text.len - at;
    *ret_rune = c[0];
    if (c[0] < 0x7f)
        return 0;
    if (c[0] == 0x7f)
        return 1;
    if (c[0] == 0xc2 && left > 1 && c[1] < 0xa0) { /* U+0080 to U+009F */
        *ret_rune = c[1];
        return 2;
    }
    if (left < 3 || (c[0] != 0xe2 && c[0] != 0xef))
        return 0;
    unsigned rune = (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
    *ret_rune = rune;
    bool special = rune == 0x2028 || rune == 0x2029 || rune == 0xfeff || rune >= 0xfffe;
    return special ? 3 : 0;
}

static enum status append_escaped(struct slice json, struct buf *to)
{
    size_t from = 0, len;
    unsigned rune;
    for (size_t at = 0; at < json.len; at += size_max(len, 1)) {
        len = special_at(json, at, &rune);
        if (!len)
            continue;
        TRY(buf_append(to, slice_sub(json, from, at - from)));
        TRY(buf_append_format(to, "\\u%04x", rune));
        from = at + len;
    }
    return buf_append(to, slice_sub(json, from, json.len - from));
}

static bool is_ascii(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] >= 0x7f)
            return false;
    return true;
}

static enum status append_quoted(struct slice text, struct buf *to)
{
    AUTO(buf_fini) struct buf json = {0};
    struct json_writer w;
    bool ascii = is_ascii(text);
    json_writer_init(&w, ascii ? to : &json);
    json_string(&w, text);
    TRY(json_writer_finish(&w));
    return ascii ? ST_OK : append_escaped(buf_slice(&json), to);
}

static enum status append_text(struct slice text, struct buf *to)
{
    return is_plain(text) ? buf_append(to, text) : append_quoted(text, to);
}

static enum status append_scalar(struct arena *arena, const struct json_node *node, struct buf *to)
{
    struct slice text;
    switch (node->type) {
    case JSON_TYPE_NULL:
        return buf_append_text(to, "null");
    case JSON_TYPE_BOOL:
        return buf_append_text(to, node->truth ? "true" : "false");
    case JSON_TYPE_NUMBER:
        return buf_append(to, node->text);
    case JSON_TYPE_STRING:
        TRY(json_node_text(node, arena, &text));
        return append_text(text, to);
    case JSON_TYPE_ARRAY:
        return buf_append_text(to, "[]");
    default:
        return buf_append_text(to, "{}");
    }
}

/* -- Structure -- */

struct yaml_writer {
    struct arena *arena; /* for unescaped texts */
    struct buf *to;
};

static bool is_block(const struct json_node *node)
{
    return (node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT) && node->count;
}

static enum status append_indent(struct yaml_writer *y, unsigned depth)
{
    if (y->to->len > YAML_BYTES_MAX)
        return ST_LIMIT;
    for (unsigned i = 0; i < depth; i++)
        TRY(buf_append_text(y->to, "  "));
    return ST_OK;
}

static enum status append_block(struct yaml_writer *y, const struct json_node *node, unsigned depth,
                                bool in_line);

static int by_key(const void *a, const void *b)
{
    return slice_compare((*(const struct json_node *const *)a)->key,
                         (*(const struct json_node *const *)b)->key);
}

/*
 * YAML readers recognize a simple key only in the first kilobyte of a line; go-yaml uses a smaller
 * limit.
 */
enum { SHORT_KEY_BYTES_MAX = 128 };

static enum status append_long_key(struct yaml_writer *y, struct slice key, unsigned depth)
{
    TRY(buf_append_text(y->to, "? "));
    TRY(append_text(key, y->to));
    TRY(buf_append_text(y->to, "\n"));
    return append_indent(y, depth);
}

static enum status append_member(struct yaml_writer *y, const struct json_node *member,
                                 unsigned depth)
{
    bool is_long = member->key.len > SHORT_KEY_BYTES_MAX;
    if (is_long)
        TRY(append_long_key(y, member->key, depth));
    else
        TRY(append_text(member->key, y->to));
    if (is_block(member) && !is_long) {
        TRY(buf_append_text(y->to, ":\n"));
        /* A list is not indented relative to its key. */
        bool list = member->type == JSON_TYPE_ARRAY;
        return append_block(y, member, list ? depth : depth + 1, false);
    }
    TRY(buf_append_text(y->to, ": "));
    if (is_block(member))
        return append_block(y, member, depth + 1, true);
    TRY(append_scalar(y->arena, member, y->to));
    return buf_append_text(y->to, "\n");
}

static enum status append_members(struct yaml_writer *y, const struct json_node **members,
                                  size_t count, unsigned depth, bool in_line)
{
    for (size_t i = 0; i < count; i++) {
        if (i || !in_line)
            TRY(append_indent(y, depth));
        TRY(append_member(y, members[i], depth));
    }
    return ST_OK;
}

static enum status append_object(struct yaml_writer *y, const struct json_node *node,
                                 unsigned depth, bool in_line)
{
    const struct json_node **members = malloc(node->count * sizeof(const struct json_node *));
    size_t count = 0;
    if (!members)
        return ST_NOMEM;
    for (const struct json_node *member = node->first; member; member = member->next)
        members[count++] = member;
    qsort(members, count, sizeof(const struct json_node *), by_key);
    enum status status = append_members(y, members, count, depth, in_line);
    free(members);
    return status;
}

/* in_line: the first line of the node has begun already. */
static enum status append_block(struct yaml_writer *y, const struct json_node *node, unsigned depth,
                                bool in_line)
{
    if (node->type == JSON_TYPE_OBJECT)
        return append_object(y, node, depth, in_line);
    for (const struct json_node *item = node->first; item; item = item->next) {
        if (item != node->first || !in_line)
            TRY(append_indent(y, depth));
        TRY(buf_append_text(y->to, "- "));
        if (is_block(item)) {
            TRY(append_block(y, item, depth + 1, true));
            continue;
        }
        TRY(append_scalar(y->arena, item, y->to));
        TRY(buf_append_text(y->to, "\n"));
    }
    return ST_OK;
}

enum status yaml_tree_write(struct arena *arena, const struct json_node *root, struct buf *to)
{
    struct yaml_writer y = {arena, to};
    if (is_block(root))
        return append_block(&y, root, 0, false);
    TRY(append_scalar(arena, root, to));
    return buf_append_text(to, "\n");
}
