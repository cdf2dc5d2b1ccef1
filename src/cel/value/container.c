#include "cel/value/container.h"

#include "cel/value/memo.h"
#include "cel/value/name.h"
#include "cel/value/shape.h"

#include <stdio.h>

enum {
    ROOM_MIN = 4,
    LINEAR_MAX = 8, /* maps with more entries have a hash table */
};

/* -- Lists -- */

struct cel_value cel_list_new(struct cel_work *work, uint32_t room)
{
    struct cel_array *array = arena_calloc(work->arena, 1, sizeof(*array));
    if (array && room)
        array->items = arena_calloc(work->arena, room, sizeof(*array->items));
    if (!array || (room && !array->items))
        return CEL_NO_MEMORY;
    array->room = room;
    return (struct cel_value){.kind = CEL_LIST, .array = array};
}

struct cel_value cel_list_at(struct cel_work *work, struct cel_value list, uint32_t index)
{
    assert(list.kind == CEL_LIST && index < list.count);
    if (!list.is_view && !list.shape)
        return list.array->items[index];
    const struct json_node *node = list.is_view ? cel_memo_item(work, list.node, index) : NULL;
    if (list.is_view && !node)
        return CEL_NO_MEMORY;
    struct cel_value item = node ? cel_of_json(work, node) : list.array->items[index];
    return list.shape ? cel_shaped(work, list.shape->item, item) : item;
}

/* Adds the items of a list behind those of another, whose array ends there. An item that is an
 * error remains one: it is reported when the item is used. As a raw value, null becomes one that
 * has no shape, because cel-go represents it by a number. */
static void copy_items(struct cel_work *work, struct cel_array *to, struct cel_value from,
                       bool as_raws)
{
    struct cel_walk walk;
    struct cel_value index, item;
    work->steps_left -= from.count;
    cel_walk_init(&walk, work, from);
    while (cel_walk_next(&walk, &index, &item)) {
        item.is_view |= as_raws && item.kind == CEL_NULL;
        to->items[to->count++] = as_raws ? cel_raw(item) : item;
    }
}

/* A list with the items of this one, and room for more behind them that no other list uses. */
static struct cel_value reserve(struct cel_work *work, struct cel_value list, uint32_t more)
{
    uint32_t count = list.count;
    if (!list.is_view && list.array->count == count && list.array->room - count >= more)
        return list;
    if (more > UINT32_MAX / 4 || count > UINT32_MAX / 4)
        return CEL_NO_MEMORY;
    uint32_t room = count + more > 2 * count ? count + more : 2 * count;
    struct cel_value copy = cel_list_new(work, room < ROOM_MIN ? ROOM_MIN : room);
    if (cel_is_error(copy))
        return copy;
    copy.shape = list.shape;
    list.shape = NULL;
    copy_items(work, copy.array, list, false);
    copy.count = count;
    return copy;
}

struct cel_value cel_list_append(struct cel_work *work, struct cel_value list,
                                 struct cel_value item)
{
    list = reserve(work, list, 1);
    if (cel_is_error(list))
        return list;
    if (list.shape)
        item = cel_raw(item);
    list.array->items[list.array->count++] = item;
    list.count++;
    return list;
}

struct cel_value cel_list_concat(struct cel_work *work, struct cel_value a, struct cel_value b)
{
    assert(!a.shape || a.shape->kind == CEL_SHAPE_LIST);
    a = reserve(work, a, b.count);
    if (cel_is_error(a))
        return a;
    copy_items(work, a.array, b, a.shape);
    a.count += b.count;
    return a;
}

/* -- Maps -- */

struct cel_value cel_map_new(struct cel_work *work, uint32_t room)
{
    struct cel_entry_array *entries = arena_calloc(work->arena, 1, sizeof(*entries));
    if (entries && room)
        entries->pairs = arena_calloc(work->arena, 2 * (size_t)room, sizeof(*entries->pairs));
    if (!entries || (room && !entries->pairs))
        return CEL_NO_MEMORY;
    entries->room = room;
    return (struct cel_value){.kind = CEL_MAP, .entries = entries};
}

/* Equal keys have equal hashes: numbers hash by their value as a double. */
static uint64_t hash_key(struct cel_value key)
{
    double number = 0;
    uint64_t hash = 14695981039346656037u;
    switch (key.kind) {
    case CEL_BOOL:
        return key.truth ? 0x9e3779b97f4a7c15u : 1;
    case CEL_INT:
        number = (double)key.i64;
        break;
    case CEL_UINT:
        number = (double)key.u64;
        break;
    case CEL_DOUBLE:
        number = key.number == 0 ? 0 : key.number; /* -0 is equal to 0 */
        break;
    default:
        for (size_t i = 0; i < key.length; i++)
            hash = (hash ^ key.bytes[i]) * 1099511628211u;
        return hash ^ hash >> 32;
    }
    memcpy(&hash, &number, sizeof(hash));
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static bool is_key(struct cel_value key)
{
    return key.kind == CEL_BOOL || key.kind == CEL_INT || key.kind == CEL_UINT ||
           key.kind == CEL_STRING;
}

static bool keys_equal(struct cel_work *work, struct cel_value a, struct cel_value b)
{
    return cel_is_true(cel_equal(work, a, b));
}

/* The number of the entry with a key, or UINT32_MAX. */
static uint32_t find_entry(struct cel_work *work, struct cel_value map, struct cel_value key)
{
    const struct cel_entry_array *entries = map.entries;
    if (!entries->slots) {
        for (uint32_t i = 0; i < map.count; i++)
            if (keys_equal(work, entries->pairs[2 * i], key))
                return i;
        return UINT32_MAX;
    }
    for (uint64_t at = hash_key(key);; at++) {
        uint32_t entry = entries->slots[at & (entries->slot_count - 1)];
        if (!entry)
            return UINT32_MAX;
        if (entry <= map.count && keys_equal(work, entries->pairs[2 * (entry - 1)], key))
            return entry - 1;
    }
}

static void place(struct cel_entry_array *entries, uint32_t number)
{
    uint64_t at = hash_key(entries->pairs[2 * number]);
    while (entries->slots[at & (entries->slot_count - 1)])
        at++;
    entries->slots[at & (entries->slot_count - 1)] = number + 1;
}

/* Makes room for one more entry, and a table of at most half its size for many. */
static bool grow(struct cel_work *work, struct cel_entry_array *entries)
{
    if (entries->count == entries->room) {
        uint32_t room = entries->room ? 2 * entries->room : ROOM_MIN;
        struct cel_value *pairs = arena_calloc(work->arena, 2 * (size_t)room, sizeof(*pairs));
        if (!pairs)
            return false;
        if (entries->count)
            memcpy(pairs, entries->pairs, 2 * (size_t)entries->count * sizeof(*pairs));
        entries->pairs = pairs;
        entries->room = room;
    }
    if (entries->count < LINEAR_MAX || 2 * (entries->count + 1) <= entries->slot_count)
        return true;
    uint32_t slot_count = entries->slot_count ? 2 * entries->slot_count : 8 * LINEAR_MAX;
    entries->slots = arena_calloc(work->arena, slot_count, sizeof(*entries->slots));
    if (!entries->slots)
        return false;
    entries->slot_count = slot_count;
    work->steps_left -= entries->count;
    for (uint32_t i = 0; i < entries->count; i++)
        place(entries, i);
    return true;
}

static void add(struct cel_entry_array *entries, struct cel_value key, struct cel_value value)
{
    entries->pairs[2 * entries->count] = key;
    entries->pairs[2 * entries->count + 1] = value;
    entries->count++;
    if (entries->slots)
        place(entries, entries->count - 1);
}

/* A map with the same entries, to which others can be added. */
static struct cel_value copy_map(struct cel_work *work, struct cel_value map)
{
    struct cel_walk walk;
    struct cel_value key, value;
    struct cel_value copy = cel_map_new(work, map.count + ROOM_MIN);
    work->steps_left -= map.count;
    cel_walk_init(&walk, work, map);
    while (!cel_is_error(copy) && cel_walk_next(&walk, &key, &value)) {
        if (!grow(work, copy.entries))
            return CEL_NO_MEMORY;
        add(copy.entries, key, value);
        copy.count++;
    }
    return copy;
}

static struct cel_value existing_key(struct cel_work *work, struct cel_value key)
{
    char number[24] = "false";
    if (key.kind == CEL_BOOL && key.truth)
        snprintf(number, sizeof(number), "true");
    else if (key.kind == CEL_INT)
        snprintf(number, sizeof(number), "%lld", (long long)key.i64);
    else if (key.kind == CEL_UINT)
        snprintf(number, sizeof(number), "%llu", (unsigned long long)key.u64);
    struct slice text = key.kind == CEL_STRING ? cel_text(key) : slice_from_text(number);
    return cel_of_error_format(work, "insert failed: key %.*s already exists", SLICE_ARGS(text));
}

struct cel_value cel_map_insert(struct cel_work *work, struct cel_value map, struct cel_value key,
                                struct cel_value value)
{
    struct cel_value found;
    assert(map.kind == CEL_MAP);
    if (!is_key(key))
        return cel_of_error_format(work, "unsupported key type: %s", cel_value_type_name(key));
    if (cel_map_find(work, map, key, &found))
        return existing_key(work, key);
    if (map.is_view || map.entries->is_constant || map.entries->count != map.count)
        map = copy_map(work, map);
    if (cel_is_error(map) || !grow(work, map.entries))
        return CEL_NO_MEMORY;
    add(map.entries, key, value);
    map.count++;
    return map;
}

struct cel_value cel_map_set(struct cel_work *work, struct cel_value map, struct cel_value key,
                             struct cel_value value)
{
    uint32_t at = is_key(key) ? find_entry(work, map, key) : UINT32_MAX;
    if (at == UINT32_MAX || map.entries->pairs[2 * at].kind != key.kind)
        return cel_map_insert(work, map, key, value);
    map.entries->pairs[2 * at + 1] = value;
    return map;
}

void cel_make_constant(struct cel_value value)
{
    if (value.kind == CEL_LIST && !value.is_view)
        value.array->room = value.array->count;
    if (value.kind == CEL_MAP && !value.is_view)
        value.entries->is_constant = true;
}

bool cel_map_find(struct cel_work *work, struct cel_value map, struct cel_value key,
                  struct cel_value *ret_value)
{
    assert(map.kind == CEL_MAP);
    if (key.kind == CEL_STRING)
        work->steps_left -= (int64_t)(key.length / 64);
    if (map.shape)
        return cel_shaped_find(work, map, key, ret_value);
    if (map.is_view)
        return key.kind == CEL_STRING && cel_view_find(work, map, cel_text(key), ret_value);
    bool can_be_key = is_key(key) || key.kind == CEL_DOUBLE;
    uint32_t entry = can_be_key ? find_entry(work, map, key) : UINT32_MAX;
    if (entry == UINT32_MAX)
        return false;
    *ret_value = map.entries->pairs[2 * entry + 1];
    return true;
}

/* -- Walking -- */

void cel_walk_init(struct cel_walk *walk, struct cel_work *work, struct cel_value over)
{
    assert(over.kind == CEL_LIST || over.kind == CEL_MAP);
    *walk = (struct cel_walk){
        .work = work, .over = over, .node = over.is_view ? over.node->first : NULL};
}

/* The next entry that expressions see. */
static bool next_member(struct cel_walk *walk, struct cel_value *ret_key,
                        struct cel_value *ret_value)
{
    struct cel_work *work = walk->work;
    const struct cel_shape *shape = walk->over.shape;
    for (const struct json_node *node = walk->node; node; node = node->next) {
        const struct cel_shape *member = cel_shape_member(shape, node->key);
        struct slice name = node->key;
        walk->node = node->next;
        work->steps_left--;
        if (!member)
            continue;
        if (shape->kind == CEL_SHAPE_OBJECT)
            (void)!cel_name_escape(work->arena, node->key, &name);
        *ret_key = cel_of_string(name);
        if (shape->kind == CEL_SHAPE_OBJECT && node->type == JSON_TYPE_NULL)
            *ret_value = cel_of_error_format(work, "no such key: %.*s", SLICE_ARGS(name));
        else
            *ret_value = cel_shaped(work, member, cel_of_json(work, node));
        return true;
    }
    return false;
}

bool cel_walk_next(struct cel_walk *walk, struct cel_value *ret_key, struct cel_value *ret_value)
{
    uint32_t i = walk->next;
    const struct cel_shape *shape = walk->over.shape;
    if (shape && walk->over.kind == CEL_MAP)
        return next_member(walk, ret_key, ret_value);
    if (i == walk->over.count)
        return false;
    walk->next++;
    if (walk->over.is_view) {
        const struct json_node *node = walk->node;
        *ret_key = walk->over.kind == CEL_LIST ? cel_of_int(i) : cel_of_string(node->key);
        *ret_value = cel_of_json(walk->work, node);
        walk->node = node->next;
    } else if (walk->over.kind == CEL_LIST) {
        *ret_key = cel_of_int(i);
        *ret_value = walk->over.array->items[i];
    } else {
        *ret_key = walk->over.entries->pairs[2 * i];
        *ret_value = walk->over.entries->pairs[2 * i + 1];
    }
    if (shape)
        *ret_value = cel_shaped(walk->work, shape->item, *ret_value);
    return true;
}
