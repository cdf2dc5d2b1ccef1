#include "cmd/ctl/decode/decode.h"

#include "cmd/ctl/decode/safe_text.h"
#include "codec/base64.h"
#include "codec/json/pretty.h"
#include "codec/utf8.h"
#include "kube/types/schema/protobuf.h"
#include "yaml/yaml.h"

enum { NAME_BYTES_MAX = 64 };

enum decode_kind decode_resolve(enum decode_kind kind, bool for_people)
{
    if (kind != DECODE_AUTO)
        return kind;
    return for_people ? DECODE_K8S : DECODE_RAW;
}

void decode_arena_init(struct arena *arena)
{
    arena_init(arena, NULL, 0, DECODE_ARENA_BYTES_MAX);
}

/* -- Trees -- */

/* Scalars are valid JSON too, but gain nothing from it. */
static bool looks_like_json(struct slice value)
{
    while (value.len && (value.ptr[0] == ' ' || (value.ptr[0] >= '\t' && value.ptr[0] <= '\r')))
        value = slice_sub(value, 1, value.len - 1);
    return value.len && (value.ptr[0] == '{' || value.ptr[0] == '[');
}

static bool is_kubernetes(const struct json_node *tree)
{
    const struct json_node *version = json_node_named(tree, "apiVersion");
    const struct json_node *kind = json_node_named(tree, "kind");
    return version && version->type == JSON_TYPE_STRING && kind && kind->type == JSON_TYPE_STRING;
}

/* NULL: it is neither. */
static struct json_node *read_tree(struct arena *arena, enum decode_kind kind, struct slice value)
{
    struct json_node *tree;
    struct error error;
    if (value.len > DECODE_VALUE_BYTES_MAX)
        return NULL;
    if (kind == DECODE_K8S && kube_protobuf_is(value))
        return kube_protobuf_decode(arena, value, &tree, &error) == ST_OK ? tree : NULL;
    if (!looks_like_json(value) || !utf8_valid(value))
        return NULL;
    return json_tree_read(arena, value, &tree, &error) == ST_OK ? tree : NULL;
}

static enum status write_tree(struct arena *arena, const struct json_node *tree,
                              enum decoded_form form, struct slice *ret_text)
{
    AUTO(buf_fini) struct buf json = {0};
    AUTO(buf_fini) struct buf text = {0};
    if (form == DECODED_YAML) {
        TRY(yaml_tree_write(arena, tree, &text));
    } else {
        TRY(json_tree_write(tree, &json));
        TRY(json_pretty(buf_slice(&json), &text));
    }
    return arena_dup(arena, buf_slice(&text), ret_text);
}

/* -- Values -- */

void decode_value(struct arena *arena, enum decode_kind kind, struct slice value,
                  struct decoded *ret_decoded)
{
    if (kind == DECODE_AUTO)
        kind = DECODE_K8S;
    *ret_decoded = (struct decoded){.form = DECODED_TEXT, .text = value};
    if (kind != DECODE_JSON && kind != DECODE_K8S)
        return;
    const struct json_node *tree = read_tree(arena, kind, value);
    if (!tree)
        return;
    bool as_yaml = kind == DECODE_K8S && is_kubernetes(tree);
    struct decoded decoded = {.form = as_yaml ? DECODED_YAML : DECODED_JSON, .tree = tree};
    if (write_tree(arena, tree, decoded.form, &decoded.text) == ST_OK)
        *ret_decoded = decoded;
}

void decode_put(FILE *to, enum decode_kind kind, struct slice value)
{
    struct arena arena;
    struct decoded decoded;
    if (kind == DECODE_RAW) {
        fwrite(value.ptr ? (const void *)value.ptr : "", 1, value.len, to);
        return;
    }
    decode_arena_init(&arena);
    decode_value(&arena, kind, value, &decoded);
    struct slice text = decoded.text;
    if (decoded.tree && text.len && text.ptr[text.len - 1] == '\n')
        text.len--; /* the caller ends the line, as it does for every value */
    safe_text_put(to, text, SAFE_LINES);
    arena_fini(&arena);
}

/* -- Members of JSON -- */

static bool put_tree(struct json_writer *writer, const struct json_node *tree, const char *name)
{
    AUTO(buf_fini) struct buf json = {0};
    if (json_tree_write(tree, &json) != ST_OK)
        return false;
    json_member_raw(writer, name, buf_slice(&json));
    return true;
}

static void put_base64(struct json_writer *writer, const char *name, struct slice value)
{
    AUTO(buf_fini) struct buf text = {0};
    char key[NAME_BYTES_MAX];
    size_t len = base64_encoded_len(value.len);
    if (buf_reserve(&text, len) != ST_OK) {
        writer->status = ST_NOMEM;
        return;
    }
    base64_encode(value, text.ptr);
    snprintf(key, sizeof(key), "%sBase64", name);
    json_member_string(writer, key, slice_of(text.ptr, len));
}

void decode_put_member(struct json_writer *writer, const char *name, enum decode_kind kind,
                       struct slice value)
{
    struct arena arena;
    decode_arena_init(&arena);
    const struct json_node *tree =
        kind == DECODE_JSON || kind == DECODE_K8S ? read_tree(&arena, kind, value) : NULL;
    if (tree && put_tree(writer, tree, name)) {
        arena_fini(&arena);
        return;
    }
    if (utf8_valid(value)) {
        json_member_string(writer, name, value);
    } else {
        put_base64(writer, name, value);
    }
    arena_fini(&arena);
}
