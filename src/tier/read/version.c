#include "tier/read/version.h"

#include "codec/json/tree.h"
#include "io/loop.h"
#include "kube/server/meta_routes.h"

#define KNOWN_NS (60 * NS_PER_S)
#define TIMEOUT_NS (10 * NS_PER_S)

enum { TREE_BYTES_MAX = 64 * 1024 };

/* Vendors add a plus to the minor version. */
static bool is_ours(struct slice body)
{
    struct arena arena;
    struct json_node *root;
    struct error ignored;
    arena_init(&arena, NULL, 0, TREE_BYTES_MAX);
    bool is = json_tree_read(&arena, body, &root, &ignored) == ST_OK &&
              json_node_text_is(root, "major", KUBE_VERSION_MAJOR) &&
              (json_node_text_is(root, "minor", KUBE_VERSION_MINOR) ||
               json_node_text_is(root, "minor", KUBE_VERSION_MINOR "+"));
    arena_fini(&arena);
    return is;
}

static void on_answer(struct tier_call *call, unsigned code, struct slice body, const char *reason)
{
    struct tier_version *v = CONTAINER_OF(call, struct tier_version, call);
    (void)reason;
    v->is_under_way = false;
    v->is_ours = code == 200 && is_ours(body);
}

bool tier_version_is_ours(struct tier_version *v)
{
    int64_t now_ns = loop_now_ns(v->loop);
    if (!v->is_under_way && (!v->requested_ns || now_ns - v->requested_ns >= KNOWN_NS)) {
        v->requested_ns = now_ns;
        v->is_under_way =
            tier_call_start(v->link, &v->call, "GET", "/version", SLICE_EMPTY, TIMEOUT_NS) == ST_OK;
    }
    return v->is_ours;
}

void tier_version_init(struct tier_version *v, struct tier_link *link, struct loop *loop)
{
    *v = (struct tier_version){.call.done = on_answer, .link = link, .loop = loop};
}

void tier_version_fini(struct tier_version *v)
{
    tier_call_cancel(&v->call);
}
