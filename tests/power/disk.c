#include "disk.h"

#include "base/xalloc.h"
#include "entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, PATH_BYTES = 4096, NAME_BYTES = 256 };

/* A write or a change of size that no sync has made durable yet. */
struct pending {
    const struct entry *entry;
    bool ended;
    bool hopeless; /* a sync failed: no later one makes it durable */
};

struct object {
    bool is_dir;
    uint8_t *durable; /* `capacity` bytes, zeros after the size */
    uint8_t *memory;  /* what a reader sees: all writes that have begun */
    uint8_t *scratch; /* an image being made */
    bool *lost;       /* by sector, while an image is made */
    uint64_t *forced; /* by sector: writes that began before this ticket are durable (O_DSYNC) */
    uint64_t capacity, durable_size, size;
    struct pending *pending;
    size_t pending_count, pending_capacity;
};

/* A name in a directory. */
struct name {
    size_t dir, object;
    char text[NAME_BYTES];
};

/* The names of a state of the disk. */
struct names {
    struct name *items;
    size_t count, capacity;
};

/* An unsynced change of names. */
struct name_change {
    const struct entry *entry;
    size_t from_dir, dir; /* directories of the old and the new name; synced with the latter */
    size_t object;        /* that is named */
    bool ended;
    char from[NAME_BYTES], to[NAME_BYTES]; /* "": no such name */
};

/* An entry begins or ends. */
struct moment {
    uint64_t ticket;
    const struct entry *entry;
    bool is_end;
};

struct disk {
    uint8_t *log; /* mapped */
    size_t log_bytes;
    struct moment *moments;
    size_t moment_count, next_moment;
    struct object *objects; /* the first is the data directory */
    size_t object_count, object_capacity;
    size_t *handles; /* the object of a handle; SIZE_MAX: none */
    size_t handle_count;
    struct names now, durable;
    struct name_change *changes; /* in the order of their begins */
    size_t change_count, change_capacity;
};

#define GROW(array, count, capacity)                                    \
    do {                                                                \
        if ((count) == (capacity)) {                                    \
            (capacity) = (capacity) ? (capacity)*2 : 64;                \
            (array) = xrealloc((array), (capacity) * sizeof(*(array))); \
        }                                                               \
    } while (0)

/* -- Names -- */

static size_t names_find(const struct names *names, size_t dir, const char *text)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].dir == dir && strcmp(names->items[i].text, text) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void names_remove(struct names *names, size_t dir, const char *text)
{
    size_t at = names_find(names, dir, text);
    if (at != SIZE_MAX)
        names->items[at] = names->items[--names->count];
}

static void names_set(struct names *names, size_t dir, const char *text, size_t object)
{
    names_remove(names, dir, text);
    GROW(names->items, names->count, names->capacity);
    struct name *name = &names->items[names->count++];
    *name = (struct name){.dir = dir, .object = object};
    snprintf(name->text, sizeof(name->text), "%s", text);
}

/* The old name is removed only if it still names the object: its creation may be lost. */
static void names_apply(struct names *names, const struct name_change *change)
{
    size_t at = change->from[0] ? names_find(names, change->from_dir, change->from) : SIZE_MAX;
    if (at != SIZE_MAX && names->items[at].object == change->object)
        names_remove(names, change->from_dir, change->from);
    if (change->to[0])
        names_set(names, change->dir, change->to, change->object);
}

/* The directory of a path, and its last part. */
static size_t find_dir(const struct disk *disk, const char *path, char last[static NAME_BYTES])
{
    size_t dir = 0;
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        char part[NAME_BYTES];
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        size_t at = names_find(&disk->now, dir, part);
        if (at == SIZE_MAX)
            return SIZE_MAX;
        dir = disk->now.items[at].object;
    }
    snprintf(last, NAME_BYTES, "%s", path);
    return dir;
}

static size_t find_object(const struct disk *disk, const char *path)
{
    char last[NAME_BYTES];
    size_t dir = find_dir(disk, path, last);
    if (dir == SIZE_MAX || !last[0])
        return dir;
    size_t at = names_find(&disk->now, dir, last);
    return at == SIZE_MAX ? SIZE_MAX : disk->now.items[at].object;
}

/* -- Files -- */

static size_t object_add(struct disk *disk, bool is_dir)
{
    GROW(disk->objects, disk->object_count, disk->object_capacity);
    disk->objects[disk->object_count] = (struct object){.is_dir = is_dir};
    return disk->object_count++;
}

static void *grow_zeroed(void *old, size_t item_bytes, uint64_t from, uint64_t to)
{
    uint8_t *bytes = xrealloc(old, to * item_bytes);
    memset(bytes + from * item_bytes, 0, (to - from) * item_bytes);
    return bytes;
}

static void object_reserve(struct object *object, uint64_t bytes)
{
    if (bytes <= object->capacity)
        return;
    uint64_t capacity = object->capacity ? object->capacity : 64 << 10;
    while (capacity < bytes)
        capacity *= 2;
    uint64_t from = object->capacity, sectors = from / SECTOR, sectors_to = capacity / SECTOR;
    object->durable = grow_zeroed(object->durable, 1, from, capacity);
    object->memory = grow_zeroed(object->memory, 1, from, capacity);
    object->scratch = grow_zeroed(object->scratch, 1, from, capacity);
    object->lost = grow_zeroed(object->lost, sizeof(bool), sectors, sectors_to);
    object->forced = grow_zeroed(object->forced, sizeof(uint64_t), sectors, sectors_to);
    object->capacity = capacity;
}

static const uint8_t *entry_data(const struct entry *entry)
{
    return (const uint8_t *)(entry + 1) + entry->text_bytes + entry->text_to_bytes;
}

static void entry_text(const struct entry *entry, bool second, char text[static PATH_BYTES])
{
    const char *at = (const char *)(entry + 1) + (second ? entry->text_bytes : 0);
    snprintf(text, PATH_BYTES, "%.*s", (int)(second ? entry->text_to_bytes : entry->text_bytes),
             at);
}

/* Copies [from, to) of the file, which the entry writes. */
static void copy_written(const struct entry *entry, uint8_t *to_bytes, uint64_t from, uint64_t to)
{
    if (entry->flags & ENTRY_ZEROS)
        memset(to_bytes + from, 0, to - from);
    else
        memcpy(to_bytes + from, entry_data(entry) + (from - entry->offset), to - from);
}

static void apply_to(const struct entry *entry, uint8_t *bytes, uint64_t *size)
{
    if (entry->kind == ENTRY_TRUNCATE) {
        if (entry->offset < *size)
            memset(bytes + entry->offset, 0, *size - entry->offset);
        *size = entry->offset;
        return;
    }
    uint64_t to = entry->offset + entry->length;
    copy_written(entry, bytes, entry->offset, to);
    if (to > *size)
        *size = to;
}

static void begin_write(struct object *object, const struct entry *entry)
{
    object_reserve(object, entry->offset + entry->length);
    apply_to(entry, object->memory, &object->size);
    GROW(object->pending, object->pending_count, object->pending_capacity);
    object->pending[object->pending_count++] = (struct pending){.entry = entry};
}

/* The sectors of the write are on the disk as they are in memory. */
static void force_sectors(struct object *object, const struct entry *entry)
{
    uint64_t end = entry->offset + entry->length;
    for (uint64_t sector = entry->offset / SECTOR; sector * SECTOR < end; sector++) {
        memcpy(object->durable + sector * SECTOR, object->memory + sector * SECTOR, SECTOR);
        object->forced[sector] = entry->begin + 1;
    }
    if (end > object->durable_size)
        object->durable_size = end;
}

static void end_write(struct object *object, const struct entry *entry)
{
    for (size_t i = object->pending_count; i-- > 0;) {
        if (object->pending[i].entry != entry)
            continue;
        object->pending[i].ended = true;
        break;
    }
    if (entry->flags & ENTRY_DSYNC && !(entry->flags & ENTRY_FAILED))
        force_sectors(object, entry);
}

/* Applies a pending write where no O_DSYNC write has been since. */
static void make_durable(struct object *object, const struct entry *entry)
{
    if (entry->kind == ENTRY_TRUNCATE) {
        apply_to(entry, object->durable, &object->durable_size);
        return;
    }
    uint64_t end = entry->offset + entry->length;
    for (uint64_t at = entry->offset; at < end;) {
        uint64_t next = (at / SECTOR + 1) * SECTOR;
        uint64_t to = next < end ? next : end;
        if (object->forced[at / SECTOR] <= entry->begin)
            copy_written(entry, object->durable, at, to);
        at = to;
    }
    if (end > object->durable_size)
        object->durable_size = end;
}

static void sync_file(struct object *object, const struct entry *sync)
{
    bool failed = sync->flags & ENTRY_FAILED;
    size_t kept = 0;
    for (size_t i = 0; i < object->pending_count; i++) {
        struct pending *pending = &object->pending[i];
        bool covered = pending->ended && pending->entry->end < sync->begin;
        if (covered && !failed && !pending->hopeless) {
            make_durable(object, pending->entry);
            continue;
        }
        pending->hopeless |= covered && failed && !(sync->flags & ENTRY_INTERRUPTED);
        object->pending[kept++] = *pending;
    }
    object->pending_count = kept;
}

/* -- Playing -- */

static void add_change(struct disk *disk, struct name_change change)
{
    GROW(disk->changes, disk->change_count, disk->change_capacity);
    disk->changes[disk->change_count++] = change;
    names_apply(&disk->now, &change);
}

static void begin_open(struct disk *disk, const struct entry *entry)
{
    char path[PATH_BYTES];
    entry_text(entry, false, path);
    size_t object = find_object(disk, path);
    if (object == SIZE_MAX && entry->flags & ENTRY_CREATES) {
        struct name_change change = {.entry = entry};
        change.dir = find_dir(disk, path, change.to);
        if (change.dir == SIZE_MAX)
            return;
        object = change.object = object_add(disk, false);
        add_change(disk, change);
    }
    while (disk->handle_count <= entry->handle) {
        disk->handles = xrealloc(disk->handles, (disk->handle_count + 1) * sizeof(size_t));
        disk->handles[disk->handle_count++] = SIZE_MAX;
    }
    disk->handles[entry->handle] = object;
}

/* Renames, removals, and new directories. */
static void begin_change(struct disk *disk, const struct entry *entry)
{
    char path[PATH_BYTES];
    struct name_change change = {.entry = entry};
    entry_text(entry, false, path);
    if (!path[0])
        return; /* the data directory itself, which exists in every image */
    if (entry->kind == ENTRY_MAKE_DIR) {
        change.dir = find_dir(disk, path, change.to);
        change.object = object_add(disk, true);
    } else {
        change.dir = change.from_dir = find_dir(disk, path, change.from);
        change.object = find_object(disk, path);
    }
    if (entry->kind == ENTRY_RENAME) {
        entry_text(entry, true, path);
        change.dir = find_dir(disk, path, change.to);
    }
    assert(change.dir != SIZE_MAX && change.object != SIZE_MAX);
    add_change(disk, change);
}

static struct object *object_of(const struct disk *disk, const struct entry *entry)
{
    assert(entry->handle < disk->handle_count && disk->handles[entry->handle] != SIZE_MAX);
    return &disk->objects[disk->handles[entry->handle]];
}

static void play_begin(struct disk *disk, const struct entry *entry)
{
    bool failed = entry->flags & ENTRY_FAILED;
    switch (entry->kind) {
    case ENTRY_OPEN:
        if (!failed)
            begin_open(disk, entry);
        break;
    case ENTRY_WRITE:
        begin_write(object_of(disk, entry), entry);
        break;
    case ENTRY_TRUNCATE:
        if (!failed)
            begin_write(object_of(disk, entry), entry);
        break;
    case ENTRY_SYNC:
        break;
    default:
        if (!failed)
            begin_change(disk, entry);
    }
}

static void sync_dir(struct disk *disk, size_t dir, const struct entry *sync)
{
    if (sync->flags & ENTRY_FAILED)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < disk->change_count; i++) {
        struct name_change *change = &disk->changes[i];
        if (change->dir == dir && change->ended && change->entry->end < sync->begin)
            names_apply(&disk->durable, change);
        else
            disk->changes[kept++] = *change;
    }
    disk->change_count = kept;
}

static void play_end(struct disk *disk, const struct entry *entry)
{
    if (entry->kind == ENTRY_WRITE || entry->kind == ENTRY_TRUNCATE) {
        end_write(object_of(disk, entry), entry);
    } else if (entry->kind == ENTRY_SYNC) {
        struct object *object = object_of(disk, entry);
        if (object->is_dir)
            sync_dir(disk, disk->handles[entry->handle], entry);
        else
            sync_file(object, entry);
    } else {
        for (size_t i = disk->change_count; i-- > 0;)
            disk->changes[i].ended |= disk->changes[i].entry == entry;
    }
}

void disk_play(struct disk *disk, uint64_t position)
{
    while (disk->next_moment < disk->moment_count &&
           disk->moments[disk->next_moment].ticket < position) {
        const struct moment *moment = &disk->moments[disk->next_moment++];
        if (moment->is_end)
            play_end(disk, moment->entry);
        else
            play_begin(disk, moment->entry);
    }
}

uint64_t disk_end(const struct disk *disk)
{
    return disk->moment_count ? disk->moments[disk->moment_count - 1].ticket + 1 : 0;
}

/* -- Reading a recording and the directory it began with -- */

static int compare_moments(const void *left, const void *right)
{
    uint64_t a = ((const struct moment *)left)->ticket, b = ((const struct moment *)right)->ticket;
    return a < b ? -1 : a > b;
}

/* The last entry may be incomplete: the server was killed. */
static void list_moments(struct disk *disk)
{
    size_t capacity = 0;
    for (size_t at = 0; at + sizeof(struct entry) <= disk->log_bytes;) {
        const struct entry *entry = (const struct entry *)(const void *)(disk->log + at);
        assert(entry->magic == ENTRY_MAGIC);
        size_t bytes = entry_bytes(entry);
        if (bytes > disk->log_bytes - at)
            break;
        at += bytes;
        GROW(disk->moments, disk->moment_count, capacity);
        disk->moments[disk->moment_count++] = (struct moment){entry->begin, entry, false};
        GROW(disk->moments, disk->moment_count, capacity);
        disk->moments[disk->moment_count++] = (struct moment){entry->end, entry, true};
    }
    if (disk->moment_count)
        qsort(disk->moments, disk->moment_count, sizeof(*disk->moments), compare_moments);
}

static enum status failed(const char *path, struct error *ret_error)
{
    enum status status = status_from_errno(errno);
    return error_set(ret_error, status, "%s: %s", path, strerror(errno));
}

static enum status load_file(struct object *object, const char *path, struct error *ret_error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return failed(path, ret_error);
    object_reserve(object, (uint64_t)st.st_size);
    if (read(fd, object->memory, (size_t)st.st_size) != st.st_size)
        return failed(path, ret_error);
    close(fd);
    object->size = object->durable_size = (uint64_t)st.st_size;
    memcpy(object->durable, object->memory, object->size);
    return ST_OK;
}

static enum status load_dir(struct disk *disk, size_t dir, const char *path,
                            struct error *ret_error)
{
    DIR *stream = opendir(path);
    if (!stream)
        return failed(path, ret_error);
    enum status status = ST_OK;
    for (struct dirent *item; status == ST_OK && (item = readdir(stream));) {
        if (item->d_name[0] == '.')
            continue;
        char child[PATH_BYTES];
        snprintf(child, sizeof(child), "%s/%s", path, item->d_name);
        size_t object = object_add(disk, item->d_type == DT_DIR);
        names_set(&disk->now, dir, item->d_name, object);
        names_set(&disk->durable, dir, item->d_name, object);
        status = item->d_type == DT_DIR ? load_dir(disk, object, child, ret_error)
                                        : load_file(&disk->objects[object], child, ret_error);
    }
    closedir(stream);
    return status;
}

enum status disk_open(const char *log_path, const char *base, struct disk **ret_disk,
                      struct error *ret_error)
{
    struct disk *disk = xcalloc(1, sizeof(*disk));
    object_add(disk, true);
    *ret_disk = disk;
    int fd = open(log_path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return failed(log_path, ret_error);
    disk->log_bytes = (size_t)st.st_size;
    if (disk->log_bytes) {
        disk->log = mmap(NULL, disk->log_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (disk->log == MAP_FAILED)
            return failed(log_path, ret_error);
    }
    close(fd);
    list_moments(disk);
    return base ? load_dir(disk, 0, base, ret_error) : ST_OK;
}

void disk_free(struct disk *disk)
{
    for (size_t i = 0; i < disk->object_count; i++) {
        struct object *object = &disk->objects[i];
        free(object->durable);
        free(object->memory);
        free(object->scratch);
        free(object->lost);
        free(object->forced);
        free(object->pending);
    }
    if (disk->log)
        munmap(disk->log, disk->log_bytes);
    free(disk->moments);
    free(disk->objects);
    free(disk->handles);
    free(disk->now.items);
    free(disk->durable.items);
    free(disk->changes);
    free(disk);
}

/* -- Images -- */

/* The choices of one image. */
struct choice {
    enum disk_style style;
    struct random *random;
    struct disk_counts *counts;
    uint64_t ticket; /* IN_ORDER, REVERSED: writes before or after it are kept */
    bool file_kept;  /* BY_FILE */
};

static bool keeps_write(const struct choice *choice, const struct object *object, size_t at)
{
    switch (choice->style) {
    case DISK_NONE:
        return false;
    case DISK_WRITES:
        return random_chance(choice->random, 1, 2);
    case DISK_IN_ORDER:
        return object->pending[at].entry->begin <= choice->ticket;
    case DISK_REVERSED:
        return object->pending[at].entry->begin >= choice->ticket;
    case DISK_LAST:
        return at + 1 == object->pending_count;
    case DISK_BY_FILE:
        return choice->file_kept;
    default:
        return true;
    }
}

/* The part of a write that is kept. The one at which an order ends is torn. */
static bool keeps_sector(const struct choice *choice, const struct entry *entry)
{
    bool torn = (choice->style == DISK_IN_ORDER || choice->style == DISK_REVERSED) &&
                entry->begin == choice->ticket;
    if (torn || choice->style == DISK_SECTORS)
        return random_chance(choice->random, 1, 2);
    if (choice->style == DISK_FEW)
        return random_chance(choice->random, 1, 10);
    return choice->style != DISK_MOST || !random_chance(choice->random, 1, 10);
}

/* A write or change of size on the image; *size is where the kept bytes end. */
static void image_write(const struct choice *choice, struct object *object, size_t at,
                        uint64_t *size)
{
    const struct entry *entry = object->pending[at].entry;
    bool kept = keeps_write(choice, object, at);
    choice->counts->writes++;
    choice->counts->writes_lost += !kept;
    if (entry->kind == ENTRY_TRUNCATE) {
        if (kept)
            apply_to(entry, object->scratch, size);
        return;
    }
    uint64_t end = entry->offset + entry->length;
    for (uint64_t from = entry->offset; from < end;) {
        uint64_t sector = from / SECTOR, next = (sector + 1) * SECTOR;
        uint64_t to = next < end ? next : end;
        bool here = kept && !object->lost[sector] && keeps_sector(choice, entry);
        if (object->forced[sector] <= entry->begin) {
            choice->counts->sectors++;
            choice->counts->sectors_lost += !here;
            object->lost[sector] = !here;
            if (here)
                copy_written(entry, object->scratch, from, to);
            if (here && to > *size)
                *size = to;
        }
        from = to;
    }
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
    return !bytes[0] && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Pages of zeros stay holes. */
static bool write_file(const char *path, const uint8_t *bytes, uint64_t size)
{
    enum { PAGE = 4096 };
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && ftruncate(fd, (off_t)size) == 0;
    for (uint64_t at = 0; good && at < size;) {
        uint64_t end = at;
        while (end < size && !is_zero(bytes + end, size_min(PAGE, size - end)))
            end += size_min(PAGE, size - end);
        good = end == at || pwrite(fd, bytes + at, end - at, (off_t)at) == (ssize_t)(end - at);
        at = end + size_min(PAGE, size - end);
    }
    if (fd >= 0)
        close(fd);
    return good;
}

static uint64_t choose_size(const struct choice *choice, uint64_t least, uint64_t most)
{
    if (least >= most || choice->style == DISK_NONE || random_chance(choice->random, 1, 2))
        return least;
    if (random_chance(choice->random, 1, 2))
        return most;
    return least + random_below(choice->random, most - least);
}

static bool image_file(struct choice *choice, struct object *object, const char *path)
{
    if (!object->pending_count)
        return write_file(path, object->durable, object->durable_size);
    choice->file_kept = random_chance(choice->random, 1, 2);
    uint64_t size = object->durable_size;
    memcpy(object->scratch, object->durable, object->capacity);
    memset(object->lost, 0, object->capacity / SECTOR);
    for (size_t i = 0; i < object->pending_count; i++)
        image_write(choice, object, i, &size);
    return write_file(path, object->scratch, choose_size(choice, size, object->size));
}

static bool image_dir(struct disk *disk, struct choice *choice, const struct names *names,
                      size_t dir, const char *path)
{
    if (mkdir(path, 0700) < 0)
        return false;
    for (size_t i = 0; i < names->count; i++) {
        const struct name *name = &names->items[i];
        if (name->dir != dir)
            continue;
        char child[PATH_BYTES];
        snprintf(child, sizeof(child), "%s/%s", path, name->text);
        struct object *object = &disk->objects[name->object];
        bool good = object->is_dir ? image_dir(disk, choice, names, name->object, child)
                                   : image_file(choice, object, child);
        if (!good)
            return false;
    }
    return true;
}

/* The unsynced changes of names that an image has. */
static void choose_names(struct disk *disk, const struct choice *choice, struct names *names)
{
    enum { NAMES_NONE, NAMES_ALL, NAMES_IN_ORDER, NAMES_ONE_BY_ONE, NAMES_WAYS };
    uint64_t way = random_below(choice->random, NAMES_WAYS);
    size_t prefix = disk->change_count ? random_below(choice->random, disk->change_count + 1) : 0;
    for (size_t i = 0; i < disk->change_count; i++) {
        bool kept = way == NAMES_ALL || (way == NAMES_IN_ORDER && i < prefix) ||
                    (way == NAMES_ONE_BY_ONE && random_chance(choice->random, 1, 2));
        choice->counts->names++;
        choice->counts->names_lost += !kept;
        if (kept)
            names_apply(names, &disk->changes[i]);
    }
}

/* The begin of one of the pending writes. */
static uint64_t choose_ticket(const struct disk *disk, struct random *random)
{
    uint64_t ticket = 0, seen = 0;
    for (size_t i = 0; i < disk->object_count; i++) {
        const struct object *object = &disk->objects[i];
        for (size_t n = 0; n < object->pending_count; n++) {
            if (random_below(random, ++seen) == 0)
                ticket = object->pending[n].entry->begin;
        }
    }
    return ticket;
}

enum status disk_image(struct disk *disk, enum disk_style style, struct random *random,
                       const char *path, struct disk_counts *ret_counts, struct error *ret_error)
{
    *ret_counts = (struct disk_counts){0};
    struct choice choice = {.style = style, .random = random, .counts = ret_counts};
    choice.ticket = choose_ticket(disk, random);
    struct names names = {0};
    for (size_t i = 0; i < disk->durable.count; i++) {
        const struct name *name = &disk->durable.items[i];
        names_set(&names, name->dir, name->text, name->object);
    }
    choose_names(disk, &choice, &names);
    bool good = image_dir(disk, &choice, &names, 0, path);
    free(names.items);
    return good ? ST_OK : failed(path, ret_error);
}

const char *disk_style_name(enum disk_style style)
{
    static const char *const names[DISK_STYLES] = {
        "none",   "all",      "sectors",  "few",  "most",
        "writes", "in order", "reversed", "last", "by file",
    };
    return names[style];
}
