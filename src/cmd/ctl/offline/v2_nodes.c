#include "cmd/ctl/offline/v2_nodes.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "cmd/ctl/print/go_json.h"

#include <inttypes.h>
#include <time.h>

#define CLIENTS "/1"
#define NS_PER_S INT64_C(1000000000)

struct walk {
    const struct v2_nodes_options *options;
    v2_nodes_fn fn;
    void *ctx;
    struct buf key;
};

/* Rounded up, as in etcd; negative when the time is over. */
static int64_t ttl_of(const struct v2_tree_node *node, int64_t now_ns)
{
    int64_t left_ns;
    if (node->expires_ns == 0)
        return 0;
    if (__builtin_sub_overflow(node->expires_ns, now_ns, &left_ns))
        left_ns = node->expires_ns < now_ns ? INT64_MIN : INT64_MAX;
    return left_ns / NS_PER_S + (left_ns % NS_PER_S > 0);
}

static enum status visit(struct walk *walk, const struct v2_tree_node *node);

static enum status visit_child(struct walk *walk, const struct v2_tree_node *child)
{
    size_t len = walk->key.len;
    if (buf_append_text(&walk->key, "/") != ST_OK || buf_append(&walk->key, child->name) != ST_OK)
        xalloc_check(NULL, child->name.len);
    enum status status = visit(walk, child);
    walk->key.len = len;
    return status;
}

/* Recursive: the levels of a tree are limited. */
static enum status visit(struct walk *walk, const struct v2_tree_node *node)
{
    struct v2_node view = {
        .key = walk->key.len ? buf_slice(&walk->key) : SLICE_LITERAL("/"),
        .node = node,
        .ttl_s = ttl_of(node, walk->options->now_ns),
    };
    if (!walk->options->without_expiring || view.ttl_s == 0)
        TRY(walk->fn(walk->ctx, &view));
    if (!node->children)
        return ST_OK;
    size_t count;
    enum status status = ST_OK;
    const struct v2_tree_node **children = v2_tree_children(node, &count);
    for (size_t i = 0; i < count && status == ST_OK; i++)
        status = visit_child(walk, children[i]);
    free(children);
    return status;
}

enum status v2_nodes_walk(const struct v2_tree *tree, const struct v2_nodes_options *options,
                          v2_nodes_fn fn, void *ctx)
{
    const struct v2_tree_node *root = v2_tree_find(tree, CLIENTS);
    if (!root)
        return ST_NOT_FOUND;
    struct walk walk = {.options = options, .fn = fn, .ctx = ctx};
    enum status status = visit(&walk, root);
    buf_fini(&walk.key);
    return status;
}

/* -- JSON -- */

/* RFC 3339 in UTC, with as many digits behind the second as are needed. */
static void write_time(FILE *to, int64_t ns)
{
    time_t seconds = ns / NS_PER_S - (ns % NS_PER_S < 0);
    int64_t rest = ns - seconds * NS_PER_S;
    struct tm tm;
    char text[64], digits[16];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(digits, sizeof(digits), ".%09" PRId64, rest);
    for (size_t len = strlen(digits); rest && digits[len - 1] == '0'; len--)
        digits[len - 1] = 0;
    fprintf(to, "\"%s%sZ\"", text, rest ? digits : "");
}

void v2_nodes_write(FILE *to, const struct v2_node *node)
{
    fputs("{\"key\":", to);
    go_json_text(to, node->key);
    if (node->node->children) {
        fputs(",\"dir\":true", to);
    } else {
        fputs(",\"value\":", to);
        go_json_text(to, node->node->value);
    }
    if (node->node->expires_ns) {
        fputs(",\"expiration\":", to);
        write_time(to, node->node->expires_ns);
    }
    if (node->ttl_s)
        fprintf(to, ",\"ttl\":%" PRId64, node->ttl_s);
    if (node->node->modified)
        fprintf(to, ",\"modifiedIndex\":%" PRIu64, node->node->modified);
    if (node->node->created)
        fprintf(to, ",\"createdIndex\":%" PRIu64, node->node->created);
    fputc('}', to);
}
