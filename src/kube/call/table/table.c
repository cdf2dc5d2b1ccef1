#include "kube/call/table/table.h"

#include "base/memory/arena.h"
#include "codec/json/tree.h"
#include "codec/json/writer.h"
#include "kube/call/table/custom_table.h"
#include "kube/call/table/printers.h"

/* The memory for the tree is proportional to the object's size. */
enum { TREE_BYTES_MIN = 1 << 20, TREE_BYTES_PER_BYTE = 64, FIRST_BYTES = 16 * 1024 };

static void write_column(struct json_writer *w, const struct kube_column *column)
{
    json_begin_object(w);
    json_member_text(w, "name", column->name);
    json_member_text(w, "type", column->type ? column->type : "string");
    json_member_text(w, "format", column->is_name ? "name" : "");
    json_member_text(w, "description", column->description ? column->description : "");
    json_member_i64(w, "priority", column->wide ? 1 : 0);
    json_end_object(w);
}

enum status kube_table_columns(const struct kube_kind *kind, struct buf *to)
{
    const struct kube_printer *printer = kube_printer_of(kind);
    const struct kube_custom *custom = kube_custom_of(kind);
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_array(&w);
    if (custom && custom->column_count) {
        write_column(&w, &printer->columns[0]);
        kube_custom_columns(custom, &w);
        json_end_array(&w);
        return json_writer_finish(&w);
    }
    for (size_t i = 0; i < printer->count; i++)
        write_column(&w, &printer->columns[i]);
    json_end_array(&w);
    return json_writer_finish(&w);
}

enum status kube_table_cells(const struct kube_kind *kind, struct slice json, int64_t now_s,
                             struct buf *to)
{
    uint8_t first[FIRST_BYTES];
    const struct kube_printer *printer = kube_printer_of(kind);
    struct kube_cells cells = {.now_s = now_s};
    struct json_writer w;
    struct error error;
    arena_init(&cells.arena, first, sizeof(first), TREE_BYTES_MIN + json.len * TREE_BYTES_PER_BYTE);
    struct json_node *object;
    if (json_tree_read(&cells.arena, json, &object, &error) == ST_OK)
        cells.object = object;
    json_writer_init(&w, to);
    cells.w = &w;
    json_begin_array(&w);
    const struct kube_custom *custom = kube_custom_of(kind);
    size_t count = custom && custom->column_count ? 1 : printer->count;
    for (size_t i = 0; i < count; i++)
        printer->columns[i].print(&cells, &printer->columns[i]);
    if (custom)
        kube_custom_cells(custom, &cells);
    json_end_array(&w);
    /* Without memory, a cell may be wrongly empty, so the whole row fails. */
    bool ran_out = arena_ran_out(&cells.arena);
    arena_fini(&cells.arena);
    return ran_out ? ST_NOMEM : json_writer_finish(&w);
}
