/* vigil tree: the directories of keys with their sizes. */
#include "base/xalloc.h"
#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/decode/size_text.h"
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/explore/explore.h"
#include "cmd/ctl/explore/key_tree.h"
#include "cmd/ctl/explore/kv_view.h"
#include "cmd/ctl/explore/pager.h"

#include <inttypes.h>

enum { NAME_COLUMNS_MAX = 200 };

struct tree_view {
    struct ctl *ctl;
    const struct tree_flags *flags;
    const struct key_tree *tree;
    bool colours;
    /* Which levels above the current node have more nodes below them. */
    bool continues[KEY_TREE_DEPTH_MAX + 1];
};

static bool is_directory(const struct tree_view *view, const struct key_tree_node *node)
{
    struct slice end = view->tree->separator, name = node->name;
    return node->depth == 0 || node->keys > 1 ||
           (name.len >= end.len && slice_equal(slice_sub(name, name.len - end.len, end.len), end));
}

/* -- Lines -- */

static void put_sums(const struct tree_view *view, uint64_t keys, uint64_t bytes)
{
    char size[SIZE_TEXT_BYTES];
    fprintf(view->ctl->out, "%10" PRIu64, keys);
    if (!view->flags->keys_only)
        fprintf(view->ctl->out, "  %11s", size_text(bytes, size));
    fputs("  ", view->ctl->out);
}

static void put_branches(const struct tree_view *view, unsigned depth, bool is_last)
{
    for (unsigned level = 1; level < depth; level++)
        fputs(view->continues[level] ? "│   " : "    ", view->ctl->out);
    if (depth > 0)
        fputs(is_last ? "└── " : "├── ", view->ctl->out);
}

static void put_name(const struct tree_view *view, const struct key_tree_node *node)
{
    bool coloured = view->colours && is_directory(view, node);
    fputs(coloured ? TERMINAL_CYAN : "", view->ctl->out);
    if (node->name.len == 0)
        fputs("(all keys)", view->ctl->out);
    else
        safe_text_put_short(view->ctl->out, node->name, NAME_COLUMNS_MAX);
    fputs(coloured ? TERMINAL_PLAIN : "", view->ctl->out);
    fputc('\n', view->ctl->out);
}

/* What is below a node and not shown. */
static void put_rest(const struct tree_view *view, const struct key_tree_node *from, unsigned depth)
{
    uint64_t keys = 0, bytes = 0, count = 0;
    for (; from; from = from->next, count++) {
        keys += from->keys;
        bytes += from->bytes;
    }
    put_sums(view, keys, bytes);
    put_branches(view, depth, true);
    fprintf(view->ctl->out, "… %" PRIu64 " more\n", count);
}

static void put_node(struct tree_view *view, const struct key_tree_node *node, bool is_last);

static void put_children(struct tree_view *view, const struct key_tree_node *node)
{
    int64_t left = view->flags->limit > 0 ? view->flags->limit : INT64_MAX;
    for (const struct key_tree_node *child = node->first; child; child = child->next) {
        if (left-- == 0 && child->next) {
            put_rest(view, child, child->depth);
            return;
        }
        put_node(view, child, child->next == NULL);
    }
}

static void put_node(struct tree_view *view, const struct key_tree_node *node, bool is_last)
{
    put_sums(view, node->keys, node->bytes);
    put_branches(view, node->depth, is_last);
    put_name(view, node);
    view->continues[node->depth] = !is_last;
    put_children(view, node);
}

static void put_text(struct tree_view *view)
{
    fprintf(view->ctl->out,
            view->flags->keys_only ? "      KEYS  KEY\n" : "      KEYS         SIZE  KEY\n");
    put_node(view, &view->tree->root, true);
    if (view->tree->is_cut)
        fprintf(stderr,
                "There are too many names: the tree is shown down to level %u, and not all names "
                "of a level may be known. Give a longer prefix to see more.\n",
                view->tree->depth);
}

/* -- JSON -- */

/* At most KEY_TREE_DEPTH_MAX levels. */
static void append_path(struct buf *path, const struct key_tree_node *node)
{
    if (node->parent)
        append_path(path, node->parent);
    xalloc_check(buf_append(path, node->name) == ST_OK ? path : NULL, node->name.len);
}

static void put_json_node(const struct tree_view *view, const struct key_tree_node *node,
                          struct json_writer *w, struct buf *path)
{
    path->len = 0;
    append_path(path, node);
    json_begin_object(w);
    decode_put_member(w, "path", DECODE_TEXT, buf_slice(path));
    json_member_u64(w, "depth", node->depth);
    json_member_u64(w, "keys", node->keys);
    if (!view->flags->keys_only) {
        json_member_u64(w, "bytes", node->bytes);
    }
    json_end_object(w);
}

static void put_json_lines(const struct tree_view *view, const struct key_tree_node *node,
                           struct buf *path)
{
    AUTO(buf_fini) struct buf line = {0};
    struct json_writer w;
    json_writer_init(&w, &line);
    put_json_node(view, node, &w, path);
    kv_view_put_line(view->ctl->out, &w);
    for (const struct key_tree_node *child = node->first; child; child = child->next)
        put_json_lines(view, child, path);
}

static void put_json_items(const struct tree_view *view, const struct key_tree_node *node,
                           struct json_writer *w, struct buf *path)
{
    put_json_node(view, node, w, path);
    for (const struct key_tree_node *child = node->first; child; child = child->next)
        put_json_items(view, child, w, path);
}

/* {"revision":…,"complete":…,"nodes":[…]} */
static void put_json(const struct tree_view *view, int64_t revision)
{
    AUTO(buf_fini) struct buf text = {0};
    AUTO(buf_fini) struct buf path = {0};
    struct json_writer w;
    if (view->ctl->globals.format == CTL_JSONL) {
        put_json_lines(view, &view->tree->root, &path);
        return;
    }
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_member_i64(&w, "revision", revision);
    json_member_bool(&w, "complete", !view->tree->is_cut);
    json_member_array(&w, "nodes");
    put_json_items(view, &view->tree->root, &w, &path);
    json_end_array(&w);
    json_end_object(&w);
    kv_view_put_line(view->ctl->out, &w);
}

/* -- The command -- */

static int read_tree(struct ctl *ctl, vigil_client *client, struct key_tree *tree,
                     int64_t *ret_revision)
{
    const struct tree_flags *flags = ctl->flags;
    struct pager_options options = {
        .prefix = tree->root.name, .revision = flags->revision, .keys_only = flags->keys_only};
    AUTO(pager_fini) struct pager pager;
    const vigil_kv *kv;
    pager_init(&pager, ctl, client, &options);
    while ((kv = pager_next(&pager)))
        key_tree_add(tree, slice_of(kv->key.data, kv->key.size), kv->key.size + kv->value.size);
    *ret_revision = pager.revision;
    return pager.exit;
}

int explore_tree(struct ctl *ctl)
{
    const struct tree_flags *flags = ctl->flags;
    struct slice prefix = slice_from_text(ctl->word_count > 0 ? ctl->words[0] : "");
    AUTO(key_tree_fini) struct key_tree tree;
    int64_t revision;
    int exit;
    key_tree_init(&tree, prefix, slice_from_text(*flags->separator ? flags->separator : "/"),
                  (unsigned)flags->depth);
    vigil_client *client = explore_client(ctl, &exit);
    if (!client)
        return exit;
    exit = read_tree(ctl, client, &tree, &revision);
    if (exit != CTL_OK)
        return exit;
    key_tree_sort(&tree, (enum key_tree_order)flags->sort);
    struct tree_view view = {.ctl = ctl,
                             .flags = flags,
                             .tree = &tree,
                             .colours = terminal_has_colours(ctl->out, ctl->globals.colour)};
    if (ctl->globals.format == CTL_JSON || ctl->globals.format == CTL_JSONL)
        put_json(&view, revision);
    else
        put_text(&view);
    return CTL_OK;
}
