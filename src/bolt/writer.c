#include "bolt/writer.h"

#include "base/buf.h"
#include "base/xalloc.h"

enum {
    LEVELS_MAX = 16, /* a branch has at least two elements, and usually a hundred */
    PAGE_ROOM = BOLT_PAGE_BYTES - BOLT_PAGE_HEAD_BYTES,
    ELEMENTS_MAX = PAGE_ROOM / BOLT_ELEMENT_BYTES,
    FREELIST_PAGE = 2,
    FIRST_PAGE = 3,
};

struct element {
    uint32_t flags;
    uint32_t ksize, vsize; /* vsize 0 in a branch */
    uint64_t pgid;         /* 0 in a leaf */
};

/* A page that is not full yet, and the pages of its level before it. */
struct bolt_level {
    uint64_t closed;  /* pages of this level that were written */
    uint64_t last_id; /* id of the last of them */
    unsigned count;
    size_t bytes; /* size of data; when counting, data has only the keys */
    size_t kept;  /* part of them that is in data */
    struct element elements[ELEMENTS_MAX];
    uint8_t data[PAGE_ROOM];
};

struct writer_bucket {
    struct slice name;
    uint64_t root; /* 0: the bucket is empty */
};

/* Output that waits to be taken: `before`, then the borrowed value, then `after`. */
struct waiting {
    struct buf before, after;
    struct slice borrowed;
    size_t taken; /* length of the three together */
};

struct bolt_writer {
    uint64_t pages_expected; /* 0: only counts */
    uint64_t next_page;
    struct writer_bucket buckets[BOLT_WRITER_BUCKETS_MAX];
    unsigned bucket_count;
    struct bolt_level *levels[LEVELS_MAX]; /* owned; NULL: not needed yet */
    struct waiting waiting;
};

static bool counts(const struct bolt_writer *writer)
{
    return writer->pages_expected == 0;
}

/* -- Going out -- */

static void out(struct bolt_writer *writer, struct slice bytes)
{
    struct waiting *waiting = &writer->waiting;
    struct buf *buf = waiting->borrowed.len ? &waiting->after : &waiting->before;
    if (buf_append(buf, bytes) != ST_OK)
        xalloc_check(NULL, bytes.len);
}

static void out_zeros(struct bolt_writer *writer, size_t count)
{
    static const uint8_t zeros[BOLT_PAGE_BYTES];
    assert(count < sizeof(zeros));
    out(writer, slice_of(zeros, count));
}

static size_t take_from(struct slice bytes, size_t *skip, uint8_t *dst, size_t room)
{
    size_t passed = size_min(*skip, bytes.len);
    size_t n = size_min(bytes.len - passed, room);
    *skip -= passed;
    slice_copy(dst, slice_sub(bytes, passed, n));
    return n;
}

size_t bolt_writer_take(struct bolt_writer *writer, uint8_t *dst, size_t room)
{
    struct waiting *waiting = &writer->waiting;
    struct slice parts[] = {buf_slice(&waiting->before), waiting->borrowed,
                            buf_slice(&waiting->after)};
    size_t skip = waiting->taken, moved = 0, all = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        moved += take_from(parts[i], &skip, dst + moved, room - moved);
        all += parts[i].len;
    }
    waiting->taken += moved;
    if (waiting->taken < all)
        return moved;
    waiting->before.len = waiting->after.len = waiting->taken = 0;
    waiting->borrowed = SLICE_EMPTY;
    return moved;
}

static void out_meta(struct bolt_writer *writer, unsigned number)
{
    struct bolt_page head = {.id = number, .flags = BOLT_META};
    struct bolt_meta meta = {
        .page_bytes = BOLT_PAGE_BYTES,
        .root.root = writer->pages_expected - 1,
        .freelist = FREELIST_PAGE,
        .pages = writer->pages_expected,
        .txid = number,
    };
    bolt_meta_finish(&meta);
    out(writer, slice_of(&head, sizeof(head)));
    out(writer, slice_of(&meta, sizeof(meta)));
    out_zeros(writer, BOLT_PAGE_BYTES - sizeof(head) - sizeof(meta));
}

/* -- Pages -- */

static struct bolt_level *level_at(struct bolt_writer *writer, unsigned height)
{
    assert(height < LEVELS_MAX);
    if (!writer->levels[height])
        writer->levels[height] = xcalloc(1, sizeof(struct bolt_level));
    return writer->levels[height];
}

static bool fits(const struct bolt_level *level, size_t bytes)
{
    return level->count * BOLT_ELEMENT_BYTES + level->bytes + BOLT_ELEMENT_BYTES + bytes <=
           PAGE_ROOM;
}

static void keep(struct bolt_level *level, struct slice bytes)
{
    slice_copy(level->data + level->kept, bytes);
    level->kept += bytes.len;
}

/* With value.ptr NULL its bytes are only counted. */
static void level_add(struct bolt_level *level, struct element element, struct slice key,
                      struct slice value)
{
    assert(fits(level, key.len + value.len));
    level->elements[level->count++] = element;
    level->bytes += key.len + value.len;
    keep(level, key);
    if (value.ptr)
        keep(level, value);
}

static void out_element(struct bolt_writer *writer, const struct element *element, unsigned height,
                        uint32_t pos)
{
    if (height == 0) {
        struct bolt_leaf_element leaf = {element->flags, pos, element->ksize, element->vsize};
        out(writer, slice_of(&leaf, sizeof(leaf)));
    } else {
        struct bolt_branch_element branch = {pos, element->ksize, element->pgid};
        out(writer, slice_of(&branch, sizeof(branch)));
    }
}

static void out_page(struct bolt_writer *writer, const struct bolt_level *level, unsigned height)
{
    struct bolt_page head = {
        .id = writer->next_page,
        .flags = height == 0 ? BOLT_LEAF : BOLT_BRANCH,
        .count = (uint16_t)level->count,
    };
    out(writer, slice_of(&head, sizeof(head)));
    size_t data_at = 0;
    for (unsigned i = 0; i < level->count; i++) {
        const struct element *element = &level->elements[i];
        size_t pos = (level->count - i) * BOLT_ELEMENT_BYTES + data_at;
        out_element(writer, element, height, (uint32_t)pos);
        data_at += element->ksize + element->vsize;
    }
    out(writer, slice_of(level->data, level->bytes));
    out_zeros(writer, PAGE_ROOM - level->count * BOLT_ELEMENT_BYTES - level->bytes);
}

static void branch_add(struct bolt_writer *writer, unsigned height, struct slice key,
                       uint64_t pgid);

/* A page of a level was written: adds it to the level above. */
static void page_is_out(struct bolt_writer *writer, unsigned height, struct slice first_key,
                        uint64_t pages)
{
    struct bolt_level *level = level_at(writer, height);
    level->last_id = writer->next_page;
    level->closed++;
    writer->next_page += pages;
    branch_add(writer, height + 1, first_key, level->last_id);
}

static void level_close(struct bolt_writer *writer, unsigned height)
{
    struct bolt_level *level = level_at(writer, height);
    if (!counts(writer))
        out_page(writer, level, height);
    page_is_out(writer, height, slice_of(level->data, level->elements[0].ksize), 1);
    level->count = 0;
    level->bytes = level->kept = 0;
}

static void mention(struct bolt_level *level, struct slice key, uint64_t pgid)
{
    struct element element = {.ksize = (uint32_t)key.len, .pgid = pgid};
    level_add(level, element, key, SLICE_EMPTY);
}

/* The last element of a full branch moves to the next branch, so that this has at least two, as in
 * bbolt. */
static void branch_add(struct bolt_writer *writer, unsigned height, struct slice key, uint64_t pgid)
{
    struct bolt_level *level = level_at(writer, height);
    if (!fits(level, key.len)) {
        struct element last = level->elements[--level->count];
        level->bytes = level->kept -= last.ksize;
        uint8_t last_key[BOLT_WRITER_KEY_BYTES_MAX];
        memcpy(last_key, level->data + level->bytes, last.ksize);
        level_close(writer, height);
        mention(level, slice_of(last_key, last.ksize), last.pgid);
    }
    mention(level, key, pgid);
}

/* A separate leaf with overflow pages. Its value is written without being copied. */
static void leaf_add_long(struct bolt_writer *writer, struct slice key, struct slice value)
{
    size_t bytes = BOLT_PAGE_HEAD_BYTES + BOLT_ELEMENT_BYTES + key.len + value.len;
    size_t pages = align_up(bytes, BOLT_PAGE_BYTES) / BOLT_PAGE_BYTES;
    assert((int64_t)value.len <= BOLT_VALUE_BYTES_MAX);
    if (!counts(writer)) {
        struct bolt_page head = {.id = writer->next_page,
                                 .flags = BOLT_LEAF,
                                 .count = 1,
                                 .overflow = (uint32_t)(pages - 1)};
        struct element element = {.ksize = (uint32_t)key.len, .vsize = (uint32_t)value.len};
        out(writer, slice_of(&head, sizeof(head)));
        out_element(writer, &element, 0, BOLT_ELEMENT_BYTES);
        out(writer, key);
        writer->waiting.borrowed = value;
        out_zeros(writer, pages * BOLT_PAGE_BYTES - bytes);
    }
    page_is_out(writer, 0, key, pages);
}

static void leaf_add(struct bolt_writer *writer, uint32_t flags, struct slice key,
                     struct slice value)
{
    assert(key.len > 0);
    assert(key.len <= BOLT_WRITER_KEY_BYTES_MAX);
    assert(!writer->waiting.borrowed.len);
    struct bolt_level *level = level_at(writer, 0);
    if (level->count && !fits(level, key.len + value.len))
        level_close(writer, 0);
    if (!fits(level, key.len + value.len)) {
        leaf_add_long(writer, key, value);
        return;
    }
    struct element element = {flags, (uint32_t)key.len, (uint32_t)value.len, 0};
    level_add(level, element, key, counts(writer) ? slice_of(NULL, value.len) : value);
}

/* -- Trees -- */

static void levels_clear(struct bolt_writer *writer)
{
    for (unsigned i = 0; i < LEVELS_MAX && writer->levels[i]; i++) {
        struct bolt_level *level = writer->levels[i];
        level->closed = level->count = 0;
        level->bytes = level->kept = 0;
    }
}

/* Writes the open pages, from the leaves up to the only page of its level: the root. 0: nothing was
 * added. */
static uint64_t tree_end(struct bolt_writer *writer)
{
    uint64_t root = 0;
    for (unsigned height = 0; root == 0; height++) {
        struct bolt_level *level = level_at(writer, height);
        if (level->count)
            level_close(writer, height);
        if (level->closed == 0)
            break;
        if (level->closed == 1)
            root = level->last_id;
    }
    levels_clear(writer); /* including the reference to the root, one level up */
    return root;
}

static void bucket_end(struct bolt_writer *writer)
{
    if (writer->bucket_count)
        writer->buckets[writer->bucket_count - 1].root = tree_end(writer);
}

void bolt_writer_bucket(struct bolt_writer *writer, struct slice name)
{
    assert(writer->bucket_count < BOLT_WRITER_BUCKETS_MAX);
    bucket_end(writer);
    writer->buckets[writer->bucket_count++] = (struct writer_bucket){.name = name};
}

void bolt_writer_add(struct bolt_writer *writer, struct slice key, struct slice value)
{
    assert(writer->bucket_count > 0);
    leaf_add(writer, 0, key, value);
}

/* A bucket without a page has an empty leaf in its own value. */
static void add_bucket(struct bolt_writer *writer, const struct writer_bucket *bucket)
{
    struct {
        struct bolt_bucket bucket;
        struct bolt_page leaf;
    } value = {.bucket.root = bucket->root, .leaf.flags = BOLT_LEAF};
    size_t bytes = bucket->root ? sizeof(value.bucket) : sizeof(value);
    leaf_add(writer, BOLT_LEAF_BUCKET, bucket->name, slice_of(&value, bytes));
}

uint64_t bolt_writer_end(struct bolt_writer *writer)
{
    bucket_end(writer);
    for (unsigned i = 0; i < writer->bucket_count; i++)
        add_bucket(writer, &writer->buckets[i]);
    uint64_t root = tree_end(writer);
    assert(root == writer->next_page - 1);
    assert(counts(writer) || writer->next_page == writer->pages_expected);
    return writer->next_page;
}

/* -- Life -- */

struct bolt_writer *bolt_writer_new(uint64_t pages)
{
    struct bolt_writer *writer = xcalloc(1, sizeof(*writer));
    writer->pages_expected = pages;
    writer->next_page = FIRST_PAGE;
    if (counts(writer))
        return writer;
    assert(pages > FIRST_PAGE);
    out_meta(writer, 0);
    out_meta(writer, 1);
    /* The list of free pages is empty: the file is written from its beginning to its end. */
    struct bolt_page freelist = {.id = FREELIST_PAGE, .flags = BOLT_FREELIST};
    out(writer, slice_of(&freelist, sizeof(freelist)));
    out_zeros(writer, BOLT_PAGE_BYTES - sizeof(freelist));
    return writer;
}

void bolt_writer_free(struct bolt_writer *writer)
{
    if (!writer)
        return;
    for (unsigned i = 0; i < LEVELS_MAX; i++)
        free(writer->levels[i]);
    buf_fini(&writer->waiting.before);
    buf_fini(&writer->waiting.after);
    free(writer);
}
