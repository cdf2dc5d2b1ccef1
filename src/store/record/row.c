#include "store/record/row.h"

#include "store/record/change.h"

struct row_head {
    uint32_t key_bytes;
    uint32_t value_bytes;
    uint8_t table;
    uint8_t deleted;
    uint8_t spare[6];
};
_Static_assert(sizeof(struct row_head) == 16, "written to disk as it is");

size_t row_bytes(const struct row *row)
{
    return align_up(sizeof(struct row_head) + row->key.len + row->value.len, 8);
}

size_t row_write(uint8_t *dst, const struct row *row)
{
    assert(row->table > 0 && row->table < ROW_TABLES);
    assert(row->key.len <= ROW_KEY_BYTES_MAX);
    assert(row->value.len <= UINT32_MAX);
    struct row_head head = {
        .key_bytes = (uint32_t)row->key.len,
        .value_bytes = (uint32_t)row->value.len,
        .table = (uint8_t)row->table,
        .deleted = row->deleted,
    };
    memcpy(dst, &head, sizeof(head));
    slice_copy(dst + sizeof(head), row->key);
    slice_copy(dst + sizeof(head) + row->key.len, row->value);
    size_t used = sizeof(head) + row->key.len + row->value.len, taken = row_bytes(row);
    memset(dst + used, 0, taken - used);
    return taken;
}

enum status row_walk_init(struct row_walk *walk, struct slice body)
{
    struct change_walk changes;
    TRY(change_walk_init(&changes, body));
    *walk = (struct row_walk){.body = body};
    memcpy(&walk->left, body.ptr + sizeof(uint32_t), sizeof(walk->left));
    if (walk->left == 0)
        return ST_OK;
    /* The rows follow the changes. */
    const struct change_head *change;
    do {
        size_t offset;
        TRY(change_walk_next(&changes, &change, &offset));
    } while (change);
    walk->offset = changes.offset;
    return ST_OK;
}

enum status row_walk_next(struct row_walk *walk, struct row *ret_row)
{
    if (walk->left == 0)
        return ST_END;
    struct row_head head;
    assert(walk->offset <= walk->body.len);
    size_t room = walk->body.len - walk->offset;
    if (room < sizeof(head))
        return ST_DAMAGED;
    memcpy(&head, walk->body.ptr + walk->offset, sizeof(head));
    room -= sizeof(head);
    if (head.key_bytes > ROW_KEY_BYTES_MAX || head.key_bytes > room ||
        head.value_bytes > room - head.key_bytes || head.table == 0 || head.table >= ROW_TABLES)
        return ST_DAMAGED;
    const uint8_t *key = walk->body.ptr + walk->offset + sizeof(head);
    *ret_row = (struct row){
        .table = head.table,
        .deleted = head.deleted,
        .key = slice_of(key, head.key_bytes),
        .value = slice_of(key + head.key_bytes, head.value_bytes),
    };
    /* The padding of the last row may be beyond the end of the body. */
    walk->offset = size_min(walk->offset + row_bytes(ret_row), walk->body.len);
    walk->left--;
    return ST_OK;
}
