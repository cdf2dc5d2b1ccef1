/*
 * The layout is that of LMDB 0.9 on 64-bit machines:
 *
 *   page   number u64 | pad u16 | flags u16 | lower u16, upper u16 (or pages u32) | offsets u16 …
 *   node   low u16, high u16 | flags u16 | key bytes u16 | key | value     at those offsets
 *   meta   magic u32, version u32 | address, map bytes u64 | two tables | last page, transaction
 *
 * A node of a branch page has the number of a page in low, high and flags. A node of a leaf has the
 * length of its value in low and high; with the flag for large values it has the number of the page
 * where the value begins.
 */
#include "store/backend/lmdb_pages.h"

#include "base/slice.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAGE_HEAD_BYTES = 16,
    NODE_HEAD_BYTES = 8,
    PAGE_BRANCH = 0x01,
    PAGE_LEAF = 0x02,
    PAGE_LARGE = 0x04,
    PAGE_META = 0x08,
    NODE_LARGE = 0x01,
    NODE_TABLE = 0x02,
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 32768,
    DEPTH_MAX = 32,
    METAS = 2,
};
static const uint64_t NO_PAGE = UINT64_MAX;
static const uint32_t MAGIC = 0xbeefc0de, VERSION = 1;

struct page_head {
    uint64_t number;
    uint16_t pad, flags, lower, upper;
};
_Static_assert(sizeof(struct page_head) == PAGE_HEAD_BYTES, "read from disk as it is");

struct node_head {
    uint16_t low, high, flags, key_bytes;
};
_Static_assert(sizeof(struct node_head) == NODE_HEAD_BYTES, "read from disk as it is");

struct table_head {
    uint32_t page_bytes; /* in the first of a meta page */
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, large_pages, entries, root;
};
_Static_assert(sizeof(struct table_head) == 48, "read from disk as it is");

struct meta {
    uint32_t magic, version;
    uint64_t address, map_bytes;
    struct table_head tables[2]; /* the tables of free pages and of tables */
    uint64_t last_page, transaction;
};
_Static_assert(sizeof(struct meta) == 136, "read from disk as it is");

struct pages {
    struct slice file;
    size_t page_bytes;
    uint64_t count;   /* the number of pages that may be in use */
    uint8_t *seen;    /* one bit per page */
    uint64_t damaged; /* the page that is damaged */
    /* NULL: the first damage ends the walk. Otherwise the walk skips what is damaged. */
    const struct lmdb_salvage *salvage;
};

/* A table that is being walked. */
struct walk {
    struct table_head found; /* pages and entries so far */
    enum { WALK_FREE, WALK_TABLES, WALK_ENTRIES } kind;
};

static enum status damaged_at(struct pages *pages, uint64_t number)
{
    pages->damaged = number;
    return ST_DAMAGED;
}

/* -- Pages -- */

/* Each page is visited once, and is within the file. */
static enum status meet(struct pages *pages, uint64_t number, uint64_t count)
{
    if (number < METAS || number >= pages->count || count > pages->count - number)
        return damaged_at(pages, number);
    for (uint64_t at = number; at < number + count; at++) {
        if (pages->seen[at / 8] & 1u << at % 8)
            return damaged_at(pages, at);
        pages->seen[at / 8] |= (uint8_t)(1u << at % 8);
    }
    return ST_OK;
}

/* A salvage also accepts a page of which only the number or only the flags are wrong. */
static bool head_is_right(const struct pages *pages, const struct page_head *head, uint64_t number,
                          uint16_t flags)
{
    bool number_right = head->number == number, flags_right = head->flags == flags;
    return pages->salvage && flags != PAGE_LARGE ? number_right || flags_right
                                                 : number_right && flags_right;
}

static enum status page_get(struct pages *pages, uint64_t number, uint64_t count, uint16_t flags,
                            const uint8_t **ret_page, struct page_head *ret_head)
{
    TRY(meet(pages, number, count));
    if ((number + count) * pages->page_bytes > pages->file.len)
        return damaged_at(pages, number);
    *ret_page = pages->file.ptr + number * pages->page_bytes;
    memcpy(ret_head, *ret_page, sizeof(*ret_head));
    if (!head_is_right(pages, ret_head, number, flags))
        return damaged_at(pages, number);
    ret_head->number = number;
    return ST_OK;
}

/* A value that does not fit into its page. */
static enum status large_check(struct pages *pages, struct walk *walk, uint64_t number,
                               size_t bytes, struct slice *ret_value)
{
    const uint8_t *page;
    struct page_head head;
    uint64_t needed = (PAGE_HEAD_BYTES - 1 + bytes) / pages->page_bytes + 1;
    TRY(page_get(pages, number, needed, PAGE_LARGE, &page, &head));
    uint32_t count = head.lower | (uint32_t)head.upper << 16;
    if (count < needed)
        return damaged_at(pages, number);
    if (count > needed)
        TRY(meet(pages, number + needed, count - needed));
    walk->found.large_pages += count;
    *ret_value = slice_of(page + PAGE_HEAD_BYTES, bytes);
    return ST_OK;
}

/* -- Skipping damage -- */

/* Damage ends a check; in a salvage, some entries are missing. */
static enum status skip_damage(struct pages *pages, enum status status)
{
    if (status != ST_DAMAGED || !pages->salvage)
        return status;
    pages->salvage->broken(pages->salvage->ctx);
    return ST_OK;
}

/* -- Nodes -- */

static enum status node_get(struct pages *pages, uint64_t number, const uint8_t *page,
                            const struct page_head *head, size_t at, struct node_head *ret_node,
                            struct slice *ret_rest)
{
    uint16_t offset;
    memcpy(&offset, page + PAGE_HEAD_BYTES + at * sizeof(offset), sizeof(offset));
    if (offset < head->upper || offset % 2 || offset + NODE_HEAD_BYTES > (int)pages->page_bytes)
        return damaged_at(pages, number);
    memcpy(ret_node, page + offset, sizeof(*ret_node));
    size_t left = pages->page_bytes - offset - NODE_HEAD_BYTES;
    if (ret_node->key_bytes > left)
        return damaged_at(pages, number);
    size_t key_bytes = ret_node->key_bytes;
    *ret_rest = slice_of(page + offset + NODE_HEAD_BYTES + key_bytes, left - key_bytes);
    return ST_OK;
}

static enum status table_check(struct pages *pages, const struct table_head *table,
                               struct walk *walk);

static size_t node_bytes(const struct node_head *node)
{
    size_t value_bytes = node->low | (size_t)node->high << 16;
    size_t bytes = NODE_HEAD_BYTES + (size_t)node->key_bytes +
                   (node->flags & NODE_LARGE ? sizeof(uint64_t) : value_bytes);
    return bytes + bytes % 2;
}

/* Nodes fill the end of a leaf without gaps: otherwise its count is wrong, and some are hidden. */
static bool leaf_is_full(struct pages *pages, const uint8_t *page, const struct page_head *head)
{
    size_t count = (size_t)(head->lower - PAGE_HEAD_BYTES) / 2, bytes = 0;
    for (size_t at = 0; at < count; at++) {
        struct node_head node;
        struct slice rest;
        if (node_get(pages, head->number, page, head, at, &node, &rest) != ST_OK)
            return false;
        bytes += node_bytes(&node);
    }
    return bytes == pages->page_bytes - head->upper;
}

/* Free pages, which may be overwritten: none of them may be in use. */
static enum status free_check(struct pages *pages, uint64_t number, struct slice value)
{
    uint64_t count;
    if (value.len < sizeof(count) || value.len % sizeof(count))
        return damaged_at(pages, number);
    memcpy(&count, value.ptr, sizeof(count));
    if (count > value.len / sizeof(count) - 1)
        return damaged_at(pages, number);
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t free_page;
        memcpy(&free_page, value.ptr + i * sizeof(free_page), sizeof(free_page));
        TRY(meet(pages, free_page, 1));
    }
    return ST_OK;
}

static enum status table_salvage(struct pages *pages, struct slice name,
                                 const struct table_head *table)
{
    const struct lmdb_salvage *salvage = pages->salvage;
    struct walk within = {.kind = WALK_ENTRIES};
    salvage->begin(salvage->ctx, name, table->entries);
    enum status status = skip_damage(pages, table_check(pages, table, &within));
    salvage->end(salvage->ctx);
    return status;
}

static enum status entry_check(struct pages *pages, struct walk *walk, uint64_t number,
                               const struct node_head *node, struct slice key, struct slice value)
{
    struct table_head table;
    bool is_table = walk->kind == WALK_TABLES;
    if ((node->flags & ~NODE_LARGE) != (is_table ? NODE_TABLE : 0))
        return damaged_at(pages, number);
    if (walk->kind == WALK_FREE)
        return free_check(pages, number, value);
    if (!is_table)
        return pages->salvage ? pages->salvage->entry(pages->salvage->ctx, key, value) : ST_OK;
    if (value.len != sizeof(table))
        return damaged_at(pages, number);
    memcpy(&table, value.ptr, sizeof(table));
    if (pages->salvage)
        return table_salvage(pages, key, &table);
    struct walk within = {.kind = WALK_ENTRIES};
    return table_check(pages, &table, &within);
}

static enum status leaf_node_check(struct pages *pages, struct walk *walk, uint64_t number,
                                   const struct node_head *node, struct slice rest)
{
    size_t bytes = node->low | (size_t)node->high << 16;
    struct slice value = slice_of(rest.ptr, bytes);
    if (node->flags & NODE_LARGE) {
        uint64_t large;
        if (rest.len < sizeof(large))
            return damaged_at(pages, number);
        memcpy(&large, rest.ptr, sizeof(large));
        TRY(large_check(pages, walk, large, bytes, &value));
    } else if (bytes > rest.len) {
        return damaged_at(pages, number);
    }
    walk->found.entries++;
    struct slice key = slice_of(rest.ptr - node->key_bytes, node->key_bytes);
    return entry_check(pages, walk, number, node, key, value);
}

/* -- Trees -- */

static enum status tree_check(struct pages *pages, struct walk *walk, uint64_t number,
                              unsigned depth);

static enum status node_check(struct pages *pages, struct walk *walk, const uint8_t *page,
                              const struct page_head *head, size_t at, unsigned depth)
{
    struct node_head node;
    struct slice rest;
    TRY(node_get(pages, head->number, page, head, at, &node, &rest));
    uint64_t below = node.low | (uint64_t)node.high << 16 | (uint64_t)node.flags << 32;
    return depth > 1 ? tree_check(pages, walk, below, depth - 1)
                     : leaf_node_check(pages, walk, head->number, &node, rest);
}

static enum status nodes_check(struct pages *pages, struct walk *walk, const uint8_t *page,
                               const struct page_head *head, unsigned depth)
{
    size_t count = (size_t)(head->lower - PAGE_HEAD_BYTES) / 2;
    bool hides = pages->salvage && depth == 1 && !leaf_is_full(pages, page, head);
    for (size_t at = 0; at < count; at++) {
        TRY(skip_damage(pages, hides ? ST_DAMAGED : ST_OK));
        TRY(skip_damage(pages, node_check(pages, walk, page, head, at, depth)));
    }
    return hides ? ST_DAMAGED : ST_OK;
}

static enum status tree_check(struct pages *pages, struct walk *walk, uint64_t number,
                              unsigned depth)
{
    const uint8_t *page;
    struct page_head head;
    bool leaf = depth == 1;
    TRY(page_get(pages, number, 1, leaf ? PAGE_LEAF : PAGE_BRANCH, &page, &head));
    size_t entries_min = leaf ? 1 : 2;
    if (head.lower % 2 || head.lower < PAGE_HEAD_BYTES + 2 * entries_min ||
        head.lower > head.upper || head.upper > pages->page_bytes)
        return damaged_at(pages, number);
    *(leaf ? &walk->found.leaf_pages : &walk->found.branch_pages) += 1;
    return nodes_check(pages, walk, page, &head, depth);
}

static enum status table_check(struct pages *pages, const struct table_head *table,
                               struct walk *walk)
{
    static const uint16_t flags[] = {[WALK_FREE] = 0x08, [WALK_TABLES] = 0, [WALK_ENTRIES] = 0};
    uint64_t named = table->root == NO_PAGE ? 0 : table->root;
    if (table->depth > DEPTH_MAX || (table->root == NO_PAGE) != (table->depth == 0) ||
        table->flags != flags[walk->kind])
        return damaged_at(pages, named);
    if (table->depth)
        TRY(tree_check(pages, walk, table->root, table->depth));
    const struct table_head *found = &walk->found;
    if (found->branch_pages != table->branch_pages || found->leaf_pages != table->leaf_pages ||
        found->large_pages != table->large_pages || found->entries != table->entries)
        return damaged_at(pages, named);
    return ST_OK;
}

/* -- The file -- */

static bool page_bytes_are_right(const struct pages *pages, size_t bytes)
{
    return bytes >= PAGE_BYTES_MIN && bytes <= PAGE_BYTES_MAX && !(bytes & (bytes - 1)) &&
           pages->file.len >= METAS * bytes;
}

/* False: the page with this number is not a meta page. */
static bool meta_read(const struct pages *pages, uint64_t at, struct meta *ret_meta)
{
    struct page_head head;
    const uint8_t *page = pages->file.ptr + at * pages->page_bytes;
    memcpy(&head, page, sizeof(head));
    memcpy(ret_meta, page + PAGE_HEAD_BYTES, sizeof(*ret_meta));
    return head.number == at && head.flags == PAGE_META && ret_meta->magic == MAGIC &&
           ret_meta->version == VERSION && ret_meta->tables[0].page_bytes == pages->page_bytes;
}

static enum status metas_read(struct pages *pages, struct meta *ret_newest)
{
    struct meta metas[METAS];
    if (pages->file.len < PAGE_HEAD_BYTES + sizeof(metas[0]))
        return damaged_at(pages, 0);
    memcpy(&metas[0], pages->file.ptr + PAGE_HEAD_BYTES, sizeof(metas[0]));
    if (metas[0].magic != MAGIC || metas[0].version != VERSION)
        return ST_NOT_FOUND; /* LMDB reports what is wrong */
    pages->page_bytes = metas[0].tables[0].page_bytes;
    if (!page_bytes_are_right(pages, pages->page_bytes))
        return damaged_at(pages, 0);
    for (uint64_t i = 0; i < METAS; i++) {
        if (!meta_read(pages, i, &metas[i]))
            return damaged_at(pages, i);
    }
    *ret_newest = metas[metas[1].transaction > metas[0].transaction];
    return ST_OK;
}

/* Pages that were never written, at the end of those in use, may be missing from the file. */
static enum status count_pages(struct pages *pages, const struct meta *meta)
{
    enum { SPARE = 1 << 16 };
    if (meta->last_page >= pages->file.len / pages->page_bytes + SPARE)
        return damaged_at(pages, meta->transaction % METAS);
    pages->count = meta->last_page + 1;
    pages->seen = calloc(pages->count / 8 + 1, 1);
    return pages->seen ? ST_OK : ST_NOMEM;
}

static enum status trees_check(struct pages *pages)
{
    struct meta meta;
    TRY(metas_read(pages, &meta));
    TRY(count_pages(pages, &meta));
    struct walk tables = {.kind = WALK_TABLES}, free_pages = {.kind = WALK_FREE};
    TRY(table_check(pages, &meta.tables[1], &tables));
    return table_check(pages, &meta.tables[0], &free_pages);
}

static enum status file_check(int fd, uint64_t *ret_page)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return status_from_errno(errno);
    if (st.st_size == 0)
        return ST_NOT_FOUND; /* created, and nothing written yet */
    size_t bytes = (size_t)st.st_size;
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return status_from_errno(errno);
    struct pages pages = {.file = slice_of(map, bytes)};
    enum status status = trees_check(&pages);
    free(pages.seen);
    munmap(map, bytes);
    *ret_page = pages.damaged;
    return status;
}

enum status lmdb_pages_check(const char *dir, uint64_t *ret_page)
{
    char path[4200];
    int n = snprintf(path, sizeof(path), "%s/data.mdb", dir);
    if (n < 0 || (size_t)n >= sizeof(path))
        return ST_INVALID;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ST_NOT_FOUND : status_from_errno(errno);
    enum status status = file_check(fd, ret_page);
    close(fd);
    return status;
}

/* -- Salvage -- */

/* The meta page with that rank by transaction (0: the newest) among those that can be read. */
static bool find_meta(struct pages *pages, unsigned rank, struct meta *ret_meta)
{
    struct meta metas[METAS];
    for (size_t bytes = PAGE_BYTES_MIN; page_bytes_are_right(pages, bytes); bytes *= 2) {
        pages->page_bytes = bytes;
        bool read[METAS] = {meta_read(pages, 0, &metas[0]), meta_read(pages, 1, &metas[1])};
        if (!read[0] && !read[1])
            continue;
        bool both = read[0] && read[1];
        if (rank > both)
            return false;
        unsigned newest = both ? metas[1].transaction > metas[0].transaction : read[1];
        *ret_meta = metas[newest ^ rank];
        return true;
    }
    return false;
}

/* Leaves that are neither reachable nor free: a page above them is damaged. */
static enum status lost_leaves(struct pages *pages)
{
    for (uint64_t number = METAS; number < pages->count; number++) {
        struct page_head head;
        if ((number + 1) * pages->page_bytes > pages->file.len)
            break;
        memcpy(&head, pages->file.ptr + number * pages->page_bytes, sizeof(head));
        bool seen = pages->seen[number / 8] & 1u << number % 8;
        if (seen || head.number != number || head.flags != PAGE_LEAF)
            continue;
        struct walk walk = {.kind = WALK_ENTRIES};
        pages->salvage->broken(pages->salvage->ctx);
        TRY(skip_damage(pages, tree_check(pages, &walk, number, 1)));
        pages->salvage->broken(pages->salvage->ctx);
    }
    return ST_OK;
}

static enum status trees_salvage(struct pages *pages, const struct meta *meta)
{
    const struct lmdb_salvage *salvage = TAKE(pages->salvage);
    struct walk tables = {.kind = WALK_TABLES}, free_pages = {.kind = WALK_FREE};
    /*
     * Free pages are read first: they have entries of earlier states, which must not be salvaged.
     */
    enum status free_status = table_check(pages, &meta->tables[0], &free_pages);
    pages->salvage = salvage;
    if (free_status != ST_OK && free_status != ST_DAMAGED)
        return free_status;
    TRY(skip_damage(pages, table_check(pages, &meta->tables[1], &tables)));
    return free_status == ST_OK ? lost_leaves(pages) : ST_OK;
}

enum status lmdb_pages_salvage(struct slice file, unsigned rank, const struct lmdb_salvage *salvage)
{
    struct pages pages = {.file = file, .salvage = salvage};
    struct meta meta;
    if (!find_meta(&pages, rank, &meta))
        return ST_NOT_FOUND;
    enum status status = count_pages(&pages, &meta);
    if (status == ST_OK)
        status = trees_salvage(&pages, &meta);
    free(pages.seen);
    return status == ST_DAMAGED ? ST_NOT_FOUND : status;
}
