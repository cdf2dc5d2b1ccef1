/*
 * Input: a byte that selects what follows: the kube-apiserver's answer to a TokenReview, its answer
 * to a SubjectAccessReview, a label selector, or a field selector. An answer is a permission only
 * if its JSON says so clearly, and what is made of a selector is JSON.
 */
#include "cost.h"

#include "codec/json/tree.h"
#include "tier/rights/review.h"
#include "tier/rights/selectors.h"
#include "tier/rights/user.h"

enum { ARENA_BYTES_MAX = 64 << 20 };

static const struct json_node *tree_of(struct arena *arena, struct slice text)
{
    struct json_node *tree;
    struct error error;
    enum status status = json_tree_read(arena, text, &tree, &error);
    assert(status == ST_OK || status == ST_NOMEM);
    return status == ST_OK ? tree : NULL;
}

static void read_token(struct arena *arena, struct slice body)
{
    struct kube_user_info info;
    const char *reason = NULL;
    enum tier_answer answer = tier_review_read_token(arena, body, &info, &reason);
    assert(answer != TIER_ANSWER_NONE || *reason);
    if (answer != TIER_ANSWER_YES)
        return;
    const struct json_node *tree = tree_of(arena, body);
    assert(!tree || json_node_is_true(json_node_path(tree, "status.authenticated")));
    assert(info.name.len);
    struct tier_user *user = tier_user_new(&info, SLICE_LITERAL("token"));
    if (!user)
        return;
    AUTO(buf_fini) struct buf review = {0};
    enum status status = tier_review_write(user, SLICE_LITERAL("\"x\":{}"), &review);
    assert(status == ST_OK || status == ST_NOMEM);
    if (status == ST_OK)
        (void)tree_of(arena, buf_slice(&review));
    tier_user_unref(user);
}

static void read_access(struct arena *arena, struct slice body)
{
    struct slice reason = SLICE_EMPTY;
    enum tier_answer answer = tier_review_read_access(arena, body, &reason);
    assert(reason.len <= TIER_REASON_BYTES_MAX || answer == TIER_ANSWER_YES);
    if (answer != TIER_ANSWER_YES)
        return;
    const struct json_node *tree = tree_of(arena, body);
    assert(!tree || json_node_is_true(json_node_path(tree, "status.allowed")));
    assert(!tree || !json_node_is_true(json_node_path(tree, "status.denied")));
}

static void write_selector(struct arena *arena, struct slice text, bool of_fields)
{
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_begin_object(&w);
    if (of_fields)
        tier_write_field_selector(&w, arena, text);
    else
        tier_write_label_selector(&w, arena, text);
    json_end_object(&w);
    enum status status = json_writer_finish(&w);
    assert(status == ST_OK || status == ST_NOMEM);
    if (status == ST_OK)
        (void)tree_of(arena, buf_slice(&out));
    struct slice name = of_fields ? tier_selected_name(arena, text) : SLICE_EMPTY;
    assert(!name.len || (!memchr(name.ptr, '/', name.len) && !memchr(name.ptr, '%', name.len)));
}

FUZZ_INPUT(.memory_bytes = 3 * ARENA_BYTES_MAX)
{
    struct arena arena;
    if (!size)
        return 0;
    struct slice rest = slice_of(data + 1, size - 1);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    if (data[0] % 4 == 0)
        read_token(&arena, rest);
    else if (data[0] % 4 == 1)
        read_access(&arena, rest);
    else
        write_selector(&arena, rest, data[0] % 4 == 3);
    arena_fini(&arena);
    return 0;
}
