#include "kube/merge/patch/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MEMBERS_MAX = 32 }; /* more do not fit into the text */

struct printer {
    char *text;
    size_t len;
};

static void add(struct printer *p, struct slice bytes)
{
    size_t n = size_min(bytes.len, PRINT_BYTES - 1 - p->len);
    slice_copy(p->text + p->len, slice_sub(bytes, 0, n));
    p->len += n;
}

static int by_key(const void *a, const void *b)
{
    return slice_compare((*(struct json_node *const *)a)->key,
                         (*(struct json_node *const *)b)->key);
}

static void print(struct printer *p, const struct json_node *node);

static void print_map(struct printer *p, const struct json_node *map)
{
    const struct json_node *members[MEMBERS_MAX];
    size_t count = 0;
    for (const struct json_node *m = map->first; m && count < MEMBERS_MAX; m = m->next)
        members[count++] = m;
    qsort(members, count, sizeof(const struct json_node *), by_key);
    add(p, SLICE_LITERAL("map["));
    for (size_t i = 0; i < count; i++) {
        add(p, i ? SLICE_LITERAL(" ") : SLICE_EMPTY);
        add(p, members[i]->key);
        add(p, SLICE_LITERAL(":"));
        print(p, members[i]);
    }
    add(p, SLICE_LITERAL("]"));
}

static void print_list(struct printer *p, const struct json_node *list)
{
    add(p, SLICE_LITERAL("["));
    for (const struct json_node *item = list->first; item && p->len < PRINT_BYTES - 1;
         item = item->next) {
        print(p, item);
        add(p, item->next ? SLICE_LITERAL(" ") : SLICE_EMPTY);
    }
    add(p, SLICE_LITERAL("]"));
}

static void print(struct printer *p, const struct json_node *node)
{
    if (p->len >= PRINT_BYTES - 1)
        return;
    switch ((enum json_type)node->type) {
    case JSON_TYPE_NULL:
        add(p, SLICE_LITERAL("<nil>"));
        break;
    case JSON_TYPE_BOOL:
        add(p, node->truth ? SLICE_LITERAL("true") : SLICE_LITERAL("false"));
        break;
    case JSON_TYPE_NUMBER:
    case JSON_TYPE_STRING:
        add(p, node->text);
        break;
    case JSON_TYPE_ARRAY:
        print_list(p, node);
        break;
    case JSON_TYPE_OBJECT:
        print_map(p, node);
        break;
    }
}

const char *print_go(const struct json_node *node, char text[PRINT_BYTES])
{
    struct printer p = {.text = text};
    print(&p, node);
    text[p.len] = '\0';
    return text;
}

const char *print_go_type(const struct json_node *node)
{
    static const char *const names[] = {
        [JSON_TYPE_NULL] = "%!s(<nil>)",      [JSON_TYPE_BOOL] = "bool",
        [JSON_TYPE_NUMBER] = "int64",         [JSON_TYPE_STRING] = "string",
        [JSON_TYPE_ARRAY] = "[]interface {}", [JSON_TYPE_OBJECT] = "map[string]interface {}",
    };
    int64_t whole;
    if (node->type == JSON_TYPE_NUMBER && !json_node_int(node, &whole))
        return "float64";
    return names[node->type];
}
