/*
 * The C side of tests/kube_oracle.py and tests/kube/oracle: reads requests from standard input,
 * each a letter and texts with length prefixes (32 bits, big-endian), and answers with '+' or '-'
 * and a text.
 *
 *     d protobuf                            JSON
 *     e JSON                                protobuf
 *     p apiVersion kind object patch        object
 *     s apiVersion kind object              strict validation's message, empty if the object is
 * valid
 */
#include "codec/json/tree.h"
#include "kube/patch/patch.h"
#include "kube/schema/protobuf.h"
#include "kube/schema/strict.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXTS_MAX = 4, TEXT_BYTES_MAX = 16 << 20 };

static void fail(const char *why)
{
    fprintf(stderr, "kube_oracle: %s\n", why);
    exit(2);
}

static struct slice read_text(struct arena *arena)
{
    uint8_t head[4];
    if (fread(head, 1, sizeof(head), stdin) != sizeof(head))
        fail("the input ends early");
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    uint8_t *text = len <= TEXT_BYTES_MAX ? arena_alloc(arena, len + 1) : NULL;
    if (!text || fread(text, 1, len, stdin) != len)
        fail("a text is too long, or the input ends early");
    return slice_of(text, len);
}

static void answer(char letter, struct slice text)
{
    uint8_t head[] = {(uint8_t)letter, (uint8_t)(text.len >> 24), (uint8_t)(text.len >> 16),
                      (uint8_t)(text.len >> 8), (uint8_t)text.len};
    fwrite(head, 1, sizeof(head), stdout);
    if (text.len)
        fwrite(text.ptr, 1, text.len, stdout);
    fflush(stdout);
}

static enum status decode(struct arena *arena, struct slice *texts, struct buf *out,
                          struct error *error)
{
    struct json_node *object;
    TRY(kube_protobuf_decode(arena, texts[0], &object, error));
    return json_tree_write(object, out);
}

static enum status encode(struct arena *arena, struct slice *texts, struct buf *out,
                          struct error *error)
{
    struct json_node *object;
    TRY(json_tree_read(arena, texts[0], &object, error));
    return kube_protobuf_encode(arena, object, out, error);
}

static enum status patch(struct arena *arena, struct slice *texts, struct buf *out,
                         struct error *error)
{
    struct json_node *object, *change;
    const struct kube_type *type = kube_type_find(texts[0], texts[1]);
    if (!type)
        fail("unknown kind");
    TRY(json_tree_read(arena, texts[2], &object, error));
    TRY(json_tree_read(arena, texts[3], &change, error));
    TRY(patch_strategic(arena, type, object, change, &object, error));
    return json_tree_write(object, out);
}

static enum status check(struct arena *arena, struct slice *texts, struct buf *out,
                         struct error *error)
{
    struct json_node *object;
    const struct kube_type *type = kube_type_find(texts[0], texts[1]);
    if (!type)
        fail("unknown kind");
    TRY(json_tree_read(arena, texts[2], &object, error));
    return kube_strict(type, object, out, error);
}

static void serve(int letter)
{
    struct slice texts[TEXTS_MAX];
    struct arena arena;
    struct buf out = {0};
    struct error error = {.text = "?"};
    arena_init(&arena, NULL, 0, 256 << 20);
    for (int i = 0; i < (letter == 'p' ? 4 : letter == 's' ? 3 : 1); i++)
        texts[i] = read_text(&arena);
    enum status status = letter == 'd'   ? decode(&arena, texts, &out, &error)
                         : letter == 'e' ? encode(&arena, texts, &out, &error)
                         : letter == 's' ? check(&arena, texts, &out, &error)
                                         : patch(&arena, texts, &out, &error);
    if (status == ST_OK)
        answer('+', buf_slice(&out));
    else
        answer('-', slice_from_text(error.text));
    buf_fini(&out);
    arena_fini(&arena);
}

int main(void)
{
    int letter;
    while ((letter = getchar()) != EOF) {
        if (!strchr("deps", letter))
            fail("unknown request");
        serve(letter);
    }
    return 0;
}
