/*
 * Strategic merge patches: apimachinery's strategicpatch step by step, on trees and the schema
 * table.
 */
#include "kube/merge/patch/merge_list.h"
#include "kube/merge/patch/patch.h"
#include "kube/merge/patch/print.h"

static const struct slice patch_directive = SLICE_LITERAL("$patch");
static const struct slice retain_keys = SLICE_LITERAL("$retainKeys");
static const struct slice set_order = SLICE_LITERAL("$setElementOrder");
static const struct slice delete_from = SLICE_LITERAL("$deleteFromPrimitiveList");

struct merging {
    struct arena *arena;
    struct error *error;
};

/* The type of an object or of the items of a list, if known. */
struct known_type {
    const struct kube_type *type; /* NULL: not a struct */
    const char *kind;             /* what Go calls it in that case */
};

/* How a member is merged. */
struct merge_rule {
    struct known_type of;
    unsigned flags; /* enum kube_field_flag */
    struct slice merge_key;
};

static enum status merge_object(struct merging *m, struct json_node *object,
                                struct json_node *patch, struct known_type known,
                                struct json_node **ret_object);

/* -- Errors -- */

static enum status bad_type(struct merging *m, const char *expected, const struct json_node *actual)
{
    return error_set(m->error, ST_WRONG_FORMAT, "expected a %s, but received a %s", expected,
                     print_go_type(actual));
}

static enum status no_merge_key(struct merging *m, const struct json_node *map, struct slice key)
{
    char text[PRINT_BYTES];
    return error_set(m->error, ST_WRONG_FORMAT, "map: %s does not contain declared merge key: %.*s",
                     print_go(map, text), SLICE_ARGS(key));
}

static enum status bad_patch_type(struct merging *m, const struct json_node *directive,
                                  const struct json_node *map)
{
    char type[PRINT_BYTES], text[PRINT_BYTES];
    return error_set(m->error, ST_WRONG_FORMAT, "unknown patch type: %s in map: %s",
                     print_go(directive, type), print_go(map, text));
}

/* -- Values of the patch -- */

static bool has_patch_directive(const struct json_node *node)
{
    return node->type == JSON_TYPE_OBJECT && json_node_member(node, patch_directive);
}

/* Parts of a patch that do not belong into an object. */
enum unwanted {
    NULL_MEMBERS = 1,
    DIRECTIVES = 2,
    OBJECTS_WITH_PATCH_DIRECTIVE = 4,
};

static bool is_unwanted(const struct json_node *parent, const struct json_node *child,
                        unsigned unwanted)
{
    bool member = parent->type == JSON_TYPE_OBJECT;
    return (unwanted & NULL_MEMBERS && member && child->type == JSON_TYPE_NULL) ||
           (unwanted & DIRECTIVES && member &&
            (slice_equal(child->key, patch_directive) || slice_equal(child->key, retain_keys) ||
             slice_has_prefix(child->key, set_order) ||
             slice_has_prefix(child->key, delete_from))) ||
           (unwanted & OBJECTS_WITH_PATCH_DIRECTIVE && has_patch_directive(child));
}

/* unwanted: of enum unwanted. Removes them at every depth. */
static void clean(struct json_node *node, unsigned unwanted)
{
    if (node->type < JSON_TYPE_ARRAY)
        return;
    for (struct json_node *child = json_node_first(node), *next; child; child = next) {
        next = json_node_next(child);
        if (is_unwanted(node, child, unwanted))
            json_node_remove(node, child);
        else
            clean(child, unwanted);
    }
}

/*
 * Inserts a member that the object lacks, or has with another type. Nulls are discarded before
 * directives are examined: in such a value `$patch: null` is not a directive.
 */
static enum status put_new(struct merging *m, struct json_node *object, struct slice key,
                           struct json_node *patch, struct json_node *value)
{
    json_node_remove(patch, value);
    clean(value, NULL_MEMBERS);
    if (has_patch_directive(value)) {
        struct json_node *old = json_node_member(object, key);
        if (old)
            json_node_remove(object, old);
        return ST_OK;
    }
    clean(value, DIRECTIVES | OBJECTS_WITH_PATCH_DIRECTIVE);
    return json_node_set(m->arena, object, key, value);
}

/* -- Rules -- */

static const char *go_kind(const struct kube_field *field)
{
    static const char *const names[] = {
        [KUBE_VALUE_STRING] = "string",  [KUBE_VALUE_BOOL] = "bool",
        [KUBE_VALUE_INT32] = "int32",    [KUBE_VALUE_INT64] = "int64",
        [KUBE_VALUE_DOUBLE] = "float64", [KUBE_VALUE_BYTES] = "slice",
    };
    return field->value < COUNT_OF(names) ? names[field->value] : "struct";
}

static enum status find_rule(struct merging *m, struct known_type known, struct slice key,
                             bool list, struct merge_rule *ret_rule)
{
    if (!known.type)
        return error_set(m->error, ST_WRONG_FORMAT,
                         "merging an object in json but data type is not struct, instead is: %s",
                         known.kind);
    const struct kube_field *field = kube_type_field(known.type, key);
    if (!field)
        return error_set(m->error, ST_WRONG_FORMAT,
                         "unable to find api field in struct %s for the json field \"%.*s\"",
                         kube_type_name(known.type), (int)size_min(key.len, 128),
                         (const char *)key.ptr);
    if (list && field->shape != KUBE_SHAPE_LIST)
        return error_set(m->error, ST_WRONG_FORMAT,
                         "expected slice or array type, but got: struct");
    bool whole = field->shape == KUBE_SHAPE_ONE || list;
    *ret_rule =
        (struct merge_rule){.flags = field->flags, .merge_key = kube_field_merge_key(field)};
    ret_rule->of.type = whole ? kube_field_type(field) : NULL;
    ret_rule->of.kind = whole ? go_kind(field) : field->shape == KUBE_SHAPE_LIST ? "slice" : "map";
    return ST_OK;
}

/* -- Lists -- */

/* Go decodes numbers as int64 or float64; other types are those of JSON. */
enum { GO_TYPE_FLOAT = 100 };

static int go_type(const struct json_node *node)
{
    int64_t whole;
    if (node->type == JSON_TYPE_NUMBER && !json_node_int(node, &whole))
        return GO_TYPE_FLOAT;
    return node->type;
}

/* Checks that all items of both lists have one type, and returns it; either list may be NULL. */
static enum status item_type(struct merging *m, const struct json_node *a,
                             const struct json_node *b, int *ret_type)
{
    const struct json_node *lists[] = {a, b};
    *ret_type = -1;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        const struct json_node *item = lists[i] ? lists[i]->first : NULL;
        for (; item; item = item->next) {
            int type = go_type(item);
            if (type == JSON_TYPE_ARRAY && *ret_type < 0)
                return error_set(m->error, ST_INVALID, "lists of lists are not supported");
            if (*ret_type >= 0 && type != *ret_type)
                return error_set(m->error, ST_WRONG_FORMAT, "list element types are not identical");
            *ret_type = type;
        }
    }
    if (*ret_type < 0)
        return error_set(m->error, ST_WRONG_FORMAT, "no elements in any of the given slices");
    return ST_OK;
}

/* Checks that every item has the merge key. */
static enum status check_keys(struct merging *m, const struct merge_list *list, struct slice key)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].node->type != JSON_TYPE_OBJECT)
            return bad_type(m, "map[string]interface {}", list->items[i].node);
        if (!list->items[i].key.len)
            return no_merge_key(m, list->items[i].node, key);
    }
    return ST_OK;
}

static void delete_items(struct json_node *list, const struct merge_list *items,
                         const struct merge_list *deleted_items)
{
    for (size_t i = 0; i < items->count; i++) {
        if (merge_list_find(deleted_items, items->items[i].key))
            json_node_remove(list, items->items[i].node);
    }
}

static enum status merge_scalars(struct merging *m, struct json_node *list, struct json_node *patch,
                                 bool deletes)
{
    AUTO(merge_list_fini) struct merge_list server = {0};
    AUTO(merge_list_fini) struct merge_list order = {0};
    TRY(merge_list_make(m->arena, list, SLICE_EMPTY, &server));
    TRY(merge_list_make(m->arena, patch, SLICE_EMPTY, &order));
    if (deletes) {
        delete_items(list, &server, &order);
        return ST_OK;
    }
    for (size_t i = 0; i < server.count; i++) {
        if (merge_list_find(&server, server.items[i].key) != &server.items[i])
            json_node_remove(list, server.items[i].node);
    }
    for (size_t i = 0; i < order.count; i++) {
        struct merge_item *item = &order.items[i];
        if (merge_list_find(&order, item->key) != item || merge_list_find(&server, item->key))
            continue;
        TRY(json_node_insert(list, NULL, item->node));
    }
    return merge_list_sort(m->arena, list, SLICE_EMPTY, &order, &server);
}

/* Removes items with $patch from the patch, and moves those to delete into *deleted_items. */
static enum status take_special(struct merging *m, struct json_node *patch, struct slice key,
                                struct json_node *deleted_items, bool *ret_replaces)
{
    for (struct json_node *item = json_node_first(patch), *next; item; item = next) {
        next = json_node_next(item);
        struct json_node *directive = json_node_member(item, patch_directive);
        if (!directive)
            continue;
        if (json_node_is_text(directive, "merge"))
            return error_set(m->error, ST_WRONG_FORMAT,
                             "merging lists cannot yet be specified in the patch");
        bool deletes = json_node_is_text(directive, "delete");
        if (!deletes && !json_node_is_text(directive, "replace"))
            return bad_patch_type(m, directive, item);
        if (deletes && !json_node_member(item, key))
            return no_merge_key(m, item, key);
        json_node_remove(patch, item);
        if (deletes)
            TRY(json_node_insert(deleted_items, NULL, item));
        else
            *ret_replaces = true;
    }
    return ST_OK;
}

/* Merges an item into the existing one with its key, or adds it. */
static enum status merge_item(struct merging *m, struct json_node *list, struct merge_list *server,
                              struct merge_item *item, const struct merge_rule *rule,
                              struct json_node *patch)
{
    struct merge_item *old = merge_list_find(server, item->key);
    struct json_node *merged;
    void *replaced;
    json_node_remove(patch, item->node);
    if (!old) {
        TRY(json_node_insert(list, NULL, item->node));
        struct merge_item *added = arena_calloc(m->arena, 1, sizeof(*added));
        if (!added)
            return ST_NOMEM;
        *added = (struct merge_item){.key = item->key, .node = item->node, .at = SIZE_MAX};
        return hash_map_put(&server->by_key, added, &replaced);
    }
    TRY(merge_object(m, old->node, item->node, rule->of, &merged));
    assert(merged == old->node); /* $patch was removed before */
    return ST_OK;
}

/*
 * After an item with `$patch: replace` the list consists of the other items of the patch. These are
 * not merged with each other, even if they have the same key.
 */
static enum status replace_maps(struct merging *m, struct json_node *list, struct json_node *patch,
                                struct slice key)
{
    AUTO(merge_list_fini) struct merge_list order = {0};
    AUTO(merge_list_fini) struct merge_list all = {0};
    while (list->first)
        json_node_remove(list, json_node_first(list));
    for (struct json_node *item; (item = json_node_first(patch)) != NULL;) {
        json_node_remove(patch, item);
        TRY(json_node_insert(list, NULL, item));
    }
    TRY(merge_list_make(m->arena, list, key, &all));
    TRY(check_keys(m, &all, key));
    TRY(merge_list_make(m->arena, NULL, key, &order));
    return merge_list_sort(m->arena, list, key, &order, &all);
}

static enum status merge_maps(struct merging *m, struct json_node *list, struct json_node *patch,
                              const struct merge_rule *rule)
{
    AUTO(merge_list_fini) struct merge_list server = {0};
    AUTO(merge_list_fini) struct merge_list order = {0};
    AUTO(merge_list_fini) struct merge_list deleted_items = {0};
    bool replaces = false;
    struct slice key = rule->merge_key;
    struct json_node *deleted = json_node_new(m->arena, JSON_TYPE_ARRAY);
    if (!deleted)
        return ST_NOMEM;
    if (!key.len)
        return error_set(m->error, ST_WRONG_FORMAT, "cannot merge lists without merge key for %s",
                         rule->of.type ? "struct" : rule->of.kind);
    TRY(take_special(m, patch, key, deleted, &replaces));
    if (replaces)
        return replace_maps(m, list, patch, key);
    TRY(merge_list_make(m->arena, deleted, key, &deleted_items));
    TRY(merge_list_make(m->arena, list, key, &server));
    delete_items(list, &server, &deleted_items);
    merge_list_fini(&server);
    TRY(merge_list_make(m->arena, list, key, &server));
    TRY(merge_list_make(m->arena, patch, key, &order));
    TRY(check_keys(m, &order, key));
    for (size_t i = 0; i < order.count; i++)
        TRY(merge_item(m, list, &server, &order.items[i], rule, patch));
    AUTO(merge_list_fini) struct merge_list all = {0};
    TRY(merge_list_make(m->arena, list, key, &all));
    TRY(check_keys(m, &all, key));
    return merge_list_sort(m->arena, list, key, &order, &server);
}

/* Returns the merged list; the items of the patch move into it. */
static enum status merge_lists(struct merging *m, struct json_node *list, struct json_node *patch,
                               const struct merge_rule *rule, bool deletes,
                               struct json_node **ret_list)
{
    int type;
    *ret_list = patch;
    if (!(rule->flags & KUBE_FIELD_MERGE) && !deletes)
        return ST_OK;
    *ret_list = list;
    if (!list->count && !patch->count)
        return ST_OK;
    TRY(item_type(m, list, patch, &type));
    if (type == JSON_TYPE_OBJECT)
        return merge_maps(m, list, patch, rule);
    return merge_scalars(m, list, patch, deletes);
}

/* -- $setElementOrder -- */

static bool is_deletion(const struct json_node *node)
{
    return has_patch_directive(node) &&
           json_node_is_text(json_node_member(node, patch_directive), "delete");
}

/* Checks that an item has its merge key if it needs one. */
static enum status check_item(struct merging *m, const struct merge_item *item, struct slice key)
{
    if (!key.len)
        return ST_OK;
    if (item->node->type != JSON_TYPE_OBJECT)
        return bad_type(m, "map[string]interface {}", item->node);
    return item->key.len ? ST_OK : no_merge_key(m, item->node, key);
}

/* Checks that the patch's items are all in the list that gives the order, in the same order. */
static enum status check_order(struct merging *m, const struct json_node *patch,
                               const struct merge_list *items, const struct merge_list *order,
                               struct slice key)
{
    char text[PRINT_BYTES];
    size_t i = 0, at = 0;
    if (!items->count || !order->count)
        return ST_OK;
    while (i < items->count && at < order->count) {
        if (has_patch_directive(items->items[i].node)) {
            i++;
            continue;
        }
        TRY(check_item(m, &items->items[i], key));
        TRY(check_item(m, &order->items[at], key));
        i += slice_equal(items->items[i].key, order->items[at].key);
        at++;
    }
    while (i < items->count && is_deletion(items->items[i].node))
        i++;
    if (i == items->count)
        return ST_OK;
    return error_set(m->error, ST_WRONG_FORMAT,
                     "The order in patch list:\n%s\n doesn't match $setElementOrder list:\n",
                     print_go(patch, text));
}

/*
 * The positions of items on the server after the patch: new items take the places of deleted ones
 * as long as there are any, and the rest have none. In Kubernetes this results from slices that
 * share memory; the order after kubectl apply depends on it.
 */
static enum status place_new_items(struct merging *m, const struct merge_list *items,
                                   struct merge_list *server)
{
    size_t places = 0, next = server->count;
    for (size_t i = 0; i < items->count; i++) {
        bool special = has_patch_directive(items->items[i].node);
        if (special && !is_deletion(items->items[i].node))
            return ST_OK; /* the list is replaced */
        if (special && merge_list_find(server, items->items[i].key)) {
            (void)hash_map_remove(&server->by_key, items->items[i].key);
            places++;
        }
    }
    for (size_t i = 0; i < items->count && places; i++) {
        struct merge_item *item = &items->items[i];
        void *replaced;
        if (has_patch_directive(item->node) || merge_list_find(server, item->key))
            continue;
        struct merge_item *added = arena_calloc(m->arena, 1, sizeof(*added));
        if (!added)
            return ST_NOMEM;
        *added = (struct merge_item){.key = item->key, .node = item->node, .at = next++};
        TRY(hash_map_put(&server->by_key, added, &replaced));
        places--;
    }
    return ST_OK;
}

/* The key after the slash of a directive. */
static enum status directive_key(struct merging *m, struct slice key, struct slice directive,
                                 struct slice *ret_key)
{
    bool order = slice_equal(directive, set_order);
    if (key.len <= directive.len || key.ptr[directive.len] != '/')
        return error_set(m->error, ST_MALFORMED, "invalid patch format of %s list",
                         order ? "setElementOrder" : "primitive");
    *ret_key = slice_sub(key, directive.len + 1, key.len - directive.len - 1);
    return ST_OK;
}

static enum status list_or_none(struct merging *m, const struct json_node *node)
{
    return !node || node->type == JSON_TYPE_ARRAY ? ST_OK : bad_type(m, "[]interface {}", node);
}

struct ordered {
    struct merge_rule rule;
    struct json_node *list, *change; /* either may be NULL */
    struct merge_list order, server;
};

static void ordered_fini(struct ordered *o)
{
    merge_list_fini(&o->order);
    merge_list_fini(&o->server);
}

/* Merges the changes that the patch has for the list, if any. */
static enum status merge_ordered(struct merging *m, struct ordered *o, struct json_node **ret_list)
{
    AUTO(merge_list_fini) struct merge_list items = {0};
    TRY(merge_list_make(m->arena, o->change, o->rule.merge_key, &items));
    TRY(check_order(m, o->change, &items, &o->order, o->rule.merge_key));
    *ret_list = o->list ? o->list : o->change;
    if (!o->change)
        return ST_OK;
    if (!o->list) {
        clean(o->change, OBJECTS_WITH_PATCH_DIRECTIVE); /* a null key is a key */
        return ST_OK;
    }
    if (o->rule.flags & KUBE_FIELD_MERGE && o->rule.merge_key.len)
        TRY(place_new_items(m, &items, &o->server));
    return merge_lists(m, o->list, o->change, &o->rule, false, ret_list);
}

static enum status put_in_order(struct merging *m, struct ordered *o, struct json_node *list)
{
    AUTO(merge_list_fini) struct merge_list all = {0};
    struct slice key = o->rule.merge_key;
    int type;
    TRY(item_type(m, list, o->list, &type));
    TRY(merge_list_make(m->arena, list, key, &all));
    if (type == JSON_TYPE_OBJECT) {
        TRY(check_keys(m, &all, key));
        TRY(check_keys(m, &o->order, key));
    }
    TRY(merge_list_sort(m->arena, list, key, &o->order, &o->server));
    clean(list, NULL_MEMBERS | DIRECTIVES);
    return ST_OK;
}

/* Merges the list for which an order is given, and sorts it. */
static enum status merge_in_order(struct merging *m, struct json_node *object,
                                  struct json_node *patch, struct known_type known,
                                  struct json_node *directive)
{
    AUTO(ordered_fini) struct ordered o = {0};
    struct slice key;
    struct json_node *merged;
    int type;
    json_node_remove(patch, directive);
    TRY(list_or_none(m, directive));
    TRY(directive_key(m, directive->key, set_order, &key));
    o.list = json_node_member(object, key);
    o.change = json_node_member(patch, key);
    TRY(list_or_none(m, o.list));
    TRY(list_or_none(m, o.change));
    TRY(find_rule(m, known, key, true, &o.rule));
    TRY(merge_list_make(m->arena, directive, o.rule.merge_key, &o.order));
    TRY(merge_list_make(m->arena, o.list, o.rule.merge_key, &o.server));
    if (!o.list && !o.change)
        return ST_OK;
    TRY(item_type(m, o.list, o.change, &type));
    if (o.change)
        json_node_remove(patch, o.change);
    TRY(merge_ordered(m, &o, &merged));
    if (merged->count)
        TRY(put_in_order(m, &o, merged));
    return merged == o.list ? ST_OK : json_node_set(m->arena, object, key, merged);
}

static enum status apply_orders(struct merging *m, struct json_node *object,
                                struct json_node *patch, struct known_type known)
{
    struct json_node *member = json_node_first(patch);
    while (member) {
        if (!slice_has_prefix(member->key, set_order)) {
            member = json_node_next(member);
            continue;
        }
        TRY(merge_in_order(m, object, patch, known, member));
        /* The list itself was also removed from the patch; directives are few. */
        member = json_node_first(patch);
    }
    return ST_OK;
}

/* -- $retainKeys -- */

static enum status apply_retain_keys(struct merging *m, struct json_node *object,
                                     struct json_node *patch)
{
    struct json_node *directive = json_node_member(patch, retain_keys);
    struct json_node *kept = json_node_new(m->arena, JSON_TYPE_OBJECT);
    if (!directive)
        return ST_OK;
    json_node_remove(patch, directive);
    if (!kept)
        return ST_NOMEM;
    for (const struct json_node *key = directive->type == JSON_TYPE_ARRAY ? directive->first : NULL;
         key; key = key->next) {
        struct json_node *mark = json_node_new(m->arena, JSON_TYPE_NULL);
        struct slice text;
        TRY(json_node_text(key, m->arena, &text));
        TRY(mark ? json_node_set(m->arena, kept, text, mark) : ST_NOMEM);
    }
    bool fits = directive->type == JSON_TYPE_ARRAY;
    for (const struct json_node *member = patch->first; member; member = member->next) {
        if (member->type != JSON_TYPE_NULL && !slice_has_prefix(member->key, set_order) &&
            !slice_has_prefix(member->key, delete_from) && !json_node_member(kept, member->key))
            fits = false;
    }
    if (!fits)
        return error_set(m->error, ST_MALFORMED, "invalid patch format of retainKeys");
    for (struct json_node *member = json_node_first(object), *next; member; member = next) {
        next = json_node_next(member);
        if (!json_node_member(kept, member->key))
            json_node_remove(object, member);
    }
    return ST_OK;
}

/* -- Objects -- */

static enum status merge_both(struct merging *m, struct json_node *object, struct json_node *old,
                              struct json_node *patch, struct json_node *change,
                              struct known_type known, bool deletes)
{
    struct merge_rule rule;
    struct json_node *merged;
    struct slice key = old->key;
    bool list = old->type == JSON_TYPE_ARRAY;
    TRY(find_rule(m, known, key, list, &rule));
    json_node_remove(patch, change);
    if (list)
        TRY(merge_lists(m, old, change, &rule, deletes, &merged));
    else if (rule.flags & KUBE_FIELD_REPLACE)
        merged = change;
    else
        TRY(merge_object(m, old, change, rule.of, &merged));
    if (list || merged != old)
        clean(merged, NULL_MEMBERS | DIRECTIVES);
    return merged == old ? ST_OK : json_node_set(m->arena, object, key, merged);
}

static enum status merge_member(struct merging *m, struct json_node *object,
                                struct json_node *patch, struct json_node *change,
                                struct known_type known)
{
    struct slice key = change->key;
    bool deletes = slice_has_prefix(key, delete_from);
    if (deletes)
        TRY(directive_key(m, change->key, delete_from, &key));
    struct json_node *old = json_node_member(object, key);
    if (change->type == JSON_TYPE_NULL) {
        if (old)
            json_node_remove(object, old);
        return ST_OK;
    }
    if (old && go_type(old) == go_type(change) && old->type >= JSON_TYPE_ARRAY)
        return merge_both(m, object, old, patch, change, known, deletes);
    return deletes ? ST_OK : put_new(m, object, key, patch, change);
}

static enum status apply_directive(struct merging *m, struct json_node *directive,
                                   struct json_node *patch, struct json_node **ret_object)
{
    if (json_node_is_text(directive, "replace")) {
        clean(patch, NULL_MEMBERS | DIRECTIVES);
        *ret_object = patch;
        return ST_OK;
    }
    if (!json_node_is_text(directive, "delete"))
        return bad_patch_type(m, directive, patch);
    *ret_object = json_node_new(m->arena, JSON_TYPE_OBJECT);
    return *ret_object ? ST_OK : ST_NOMEM;
}

static enum status merge_object(struct merging *m, struct json_node *object,
                                struct json_node *patch, struct known_type known,
                                struct json_node **ret_object)
{
    struct json_node *directive = json_node_member(patch, patch_directive);
    if (directive)
        return apply_directive(m, directive, patch, ret_object);
    TRY(apply_retain_keys(m, object, patch));
    TRY(apply_orders(m, object, patch, known));
    for (struct json_node *change = json_node_first(patch), *next; change; change = next) {
        next = json_node_next(change);
        TRY(merge_member(m, object, patch, change, known));
    }
    *ret_object = object;
    return ST_OK;
}

enum status patch_strategic(struct arena *arena, const struct kube_type *type,
                            struct json_node *object, const struct json_node *patch,
                            struct json_node **ret_object, struct error *error)
{
    struct merging m = {.arena = arena, .error = error};
    struct known_type known = {.type = type};
    if (patch->type != JSON_TYPE_OBJECT || object->type != JSON_TYPE_OBJECT)
        return error_set(error, ST_MALFORMED, "invalid JSON document");
    /* Merging moves values into the object, and the caller may need its patch again. */
    struct json_node *own = json_node_copy(arena, patch);
    enum status status = own ? merge_object(&m, object, own, known, ret_object) : ST_NOMEM;
    return status == ST_NOMEM ? error_set(error, status, "too large to be patched") : status;
}
