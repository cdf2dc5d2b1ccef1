#include "engine/member_list.h"

#include <stdlib.h>

void member_book_fini(struct member_book *book)
{
    for (size_t i = 0; i < book->count; i++)
        free(book->members[i]);
    book->count = 0;
}

void member_book_check(const struct member_book *book)
{
    assert(book->count <= COUNT_OF(book->members));
    for (size_t i = 1; i < book->count; i++)
        assert(book->members[i - 1]->id < book->members[i]->id);
}

/* -- What there is -- */

/* Its place, or where it would stand. */
static size_t place_of(const struct member_book *book, uint64_t id)
{
    size_t at = 0;
    while (at < book->count && book->members[at]->id < id)
        at++;
    return at;
}

const struct engine_member *member_book_find(const struct member_book *book, uint64_t id)
{
    size_t at = place_of(book, id);
    return at < book->count && book->members[at]->id == id ? book->members[at] : NULL;
}

static bool has_url(const struct engine_member *member, struct slice url)
{
    for (size_t i = 0; i < member->peer_url_count; i++) {
        if (slice_equal(member->peer_urls[i], url))
            return true;
    }
    return false;
}

/* Another member has one of its URLs. */
static bool url_is_taken(const struct member_book *book, const struct engine_member *member)
{
    for (size_t i = 0; i < book->count; i++) {
        for (size_t k = 0; k < member->peer_url_count; k++) {
            if (book->members[i]->id != member->id &&
                has_url(book->members[i], member->peer_urls[k]))
                return true;
        }
    }
    return false;
}

struct tally {
    unsigned voters, learners, started; /* started: of the voters */
};

static struct tally count_but(const struct member_book *book, uint64_t left_out)
{
    struct tally tally = {0};
    for (size_t i = 0; i < book->count; i++) {
        const struct engine_member *member = book->members[i];
        tally.learners += member->learner;
        if (member->learner || member->id == left_out)
            continue;
        tally.voters++;
        tally.started += member->id == book->self;
    }
    return tally;
}

static bool is_majority(unsigned started, unsigned voters)
{
    return started >= voters / 2 + 1;
}

/* -- Rules -- */

static enum status allows_urls(const struct engine_member *member)
{
    size_t bytes = 0;
    for (size_t i = 0; i < member->peer_url_count; i++)
        bytes += member->peer_urls[i].len;
    bool fits =
        member->peer_url_count <= ENGINE_PEER_URLS_MAX && bytes <= ENGINE_PEER_URL_BYTES_MAX;
    return fits ? ST_OK : ST_LIMIT;
}

static enum status allows_add(const struct member_book *book, const struct engine_member *member)
{
    struct tally now = count_but(book, 0);
    bool second = now.started == 1 && now.voters == 1; /* which etcd always lets in */
    if (!book->lax && !member->learner && !second && !is_majority(now.started, now.voters + 1))
        return ST_MEMBER_NOT_ENOUGH_STARTED;
    if (member_book_find(book, member->id))
        return ST_MEMBER_EXIST;
    if (url_is_taken(book, member))
        return ST_PEER_URL_EXIST;
    if (member->learner && now.learners >= book->learners_max)
        return ST_TOO_MANY_LEARNERS;
    return book->count < ENGINE_MEMBERS_MAX ? allows_urls(member) : ST_LIMIT;
}

static enum status allows_remove(const struct member_book *book, uint64_t id)
{
    const struct engine_member *member = member_book_find(book, id);
    struct tally then = count_but(book, id);
    bool keeps_majority = is_majority(then.started, then.voters) || (member && member->learner);
    if (id == book->self || (!book->lax && !keeps_majority))
        return ST_MEMBER_NOT_ENOUGH_STARTED;
    return member ? ST_OK : ST_MEMBER_NOT_FOUND;
}

static enum status allows_update(const struct member_book *book, const struct engine_member *member)
{
    if (!member_book_find(book, member->id))
        return ST_MEMBER_NOT_FOUND;
    return url_is_taken(book, member) ? ST_PEER_URL_EXIST : allows_urls(member);
}

/* None but this server has what was written, and it is no learner. */
static enum status allows_promote(const struct member_book *book, uint64_t id)
{
    if (!member_book_find(book, id))
        return ST_MEMBER_NOT_FOUND;
    return id == book->self ? ST_MEMBER_NOT_LEARNER : ST_LEARNER_NOT_READY;
}

enum status member_book_allows(const struct member_book *book, const struct engine_members *change)
{
    switch (change->call) {
    case ENGINE_MEMBER_ADD:
        return allows_add(book, &change->member);
    case ENGINE_MEMBER_REMOVE:
        return allows_remove(book, change->member.id);
    case ENGINE_MEMBER_UPDATE:
        return allows_update(book, &change->member);
    case ENGINE_MEMBER_PROMOTE:
        return allows_promote(book, change->member.id);
    case ENGINE_MEMBER_LIST:
        break;
    }
    return ST_OK;
}

/* -- Changes -- */

static size_t block_bytes(const struct engine_member *member)
{
    size_t bytes = sizeof(*member) + member->peer_url_count * sizeof(struct slice);
    for (size_t i = 0; i < member->peer_url_count; i++)
        bytes += member->peer_urls[i].len;
    return bytes;
}

/* The member, its slices, their bytes: one after the other. */
static void fill_block(struct engine_member *copy, const struct engine_member *member)
{
    struct slice *urls = (struct slice *)(copy + 1);
    uint8_t *bytes = (uint8_t *)(urls + member->peer_url_count);
    *copy = *member;
    copy->peer_urls = urls;
    for (size_t i = 0; i < member->peer_url_count; i++) {
        struct slice url = member->peer_urls[i];
        slice_copy(bytes, url);
        urls[i] = slice_of(bytes, url.len);
        bytes += url.len;
    }
}

struct engine_member *member_dup(const struct engine_member *member)
{
    struct engine_member *copy = malloc(block_bytes(member));
    if (copy)
        fill_block(copy, member);
    return copy;
}

void member_book_put(struct member_book *book, struct engine_member *member)
{
    size_t at = place_of(book, member->id);
    if (at < book->count && book->members[at]->id == member->id) {
        free(book->members[at]);
    } else {
        assert(book->count < COUNT_OF(book->members));
        memmove(&book->members[at + 1], &book->members[at],
                (book->count - at) * sizeof(book->members[0]));
        book->count++;
    }
    book->members[at] = member;
    member_book_check(book);
}

void member_book_drop(struct member_book *book, uint64_t id)
{
    size_t at = place_of(book, id);
    if (at == book->count || book->members[at]->id != id)
        return;
    free(book->members[at]);
    book->count--;
    memmove(&book->members[at], &book->members[at + 1],
            (book->count - at) * sizeof(book->members[0]));
}

struct engine_member member_book_after(const struct member_book *book,
                                       const struct engine_members *change)
{
    struct engine_member member = change->member;
    const struct engine_member *before = member_book_find(book, member.id);
    if (before)
        member.learner = before->learner;
    return member;
}

enum status member_book_change(struct member_book *book, const struct engine_members *change)
{
    TRY(member_book_allows(book, change));
    if (change->call == ENGINE_MEMBER_REMOVE) {
        member_book_drop(book, change->member.id);
        return ST_OK;
    }
    struct engine_member after = member_book_after(book, change);
    struct engine_member *member = member_dup(&after);
    if (!member)
        return ST_NOMEM;
    member_book_put(book, member);
    return ST_OK;
}

enum status member_book_list(const struct member_book *book, struct engine_members *answer)
{
    struct engine_member *list =
        arena_calloc(answer->op.arena, book->count, sizeof(struct engine_member));
    if (!list && book->count)
        return ST_NOMEM;
    for (size_t i = 0; i < book->count; i++) {
        struct engine_member *copy = arena_alloc(answer->op.arena, block_bytes(book->members[i]));
        if (!copy)
            return ST_NOMEM;
        fill_block(copy, book->members[i]);
        list[i] = *copy;
    }
    answer->list = list;
    answer->count = book->count;
    return ST_OK;
}
