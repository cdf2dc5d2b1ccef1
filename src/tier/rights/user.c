#include "tier/rights/user.h"

#include "codec/json/writer.h"
#include "kube/policy/access/rbac/user.h"

#include <stdlib.h>

/* -- As JSON -- */

static int compare_extras(const void *a, const void *b)
{
    const struct kube_user_extra *const *left = a, *const *right = b;
    return slice_compare((*left)->key, (*right)->key);
}

/* With the keys in order, so that the same user has the same text. */
static enum status write_extra(const struct kube_user_info *info, struct buf *to)
{
    const struct kube_user_extra *extras[KUBE_USER_EXTRAS_MAX] = {NULL};
    size_t count = size_min(info->extra_count, KUBE_USER_EXTRAS_MAX);
    struct json_writer w;
    if (!count)
        return ST_OK;
    for (size_t i = 0; i < count; i++)
        extras[i] = &info->extra[i];
    qsort(extras, count, sizeof(extras[0]), compare_extras);
    json_writer_init(&w, to);
    json_begin_object(&w);
    for (size_t i = 0; i < count; i++) {
        json_key_of(&w, extras[i]->key);
        json_strings(&w, extras[i]->values.items, extras[i]->values.count);
    }
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* An object, whose braces are left out later. */
static enum status write_spec(const struct kube_user_info *info, struct slice extra, struct buf *to)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_string(&w, "user", info->name);
    if (info->groups.count) {
        json_key(&w, "groups");
        json_strings(&w, info->groups.items, info->groups.count);
    }
    if (info->uid.len)
        json_member_string(&w, "uid", info->uid);
    if (extra.len)
        json_member_raw(&w, "extra", extra);
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* -- Life -- */

static struct slice put(uint8_t **at, struct slice bytes)
{
    uint8_t *copy = *at;
    slice_copy(copy, bytes);
    *at += bytes.len;
    return slice_of(copy, bytes.len);
}

static struct tier_user *copy(const struct kube_user_info *info, struct slice token,
                              struct slice extra, struct slice spec)
{
    size_t groups = info->groups.count;
    size_t bytes = sizeof(struct tier_user) + groups * sizeof(struct slice) + info->name.len +
                   info->uid.len + token.len + extra.len + spec.len;
    for (size_t i = 0; i < groups; i++)
        bytes += info->groups.items[i].len;
    struct tier_user *user = malloc(bytes);
    if (!user)
        return NULL;
    struct slice *names = (struct slice *)(user + 1);
    uint8_t *at = (uint8_t *)(names + groups);
    *user = (struct tier_user){.groups = names, .group_count = groups, .refs = 1, .bytes = bytes};
    user->name = put(&at, info->name);
    user->uid = put(&at, info->uid);
    user->extra = put(&at, extra);
    user->spec = put(&at, spec);
    user->token = put(&at, token);
    for (size_t i = 0; i < groups; i++)
        names[i] = put(&at, info->groups.items[i]);
    return user;
}

struct tier_user *tier_user_new(const struct kube_user_info *info, struct slice token)
{
    AUTO(buf_fini) struct buf extra = {0};
    AUTO(buf_fini) struct buf spec = {0};
    if (write_extra(info, &extra) != ST_OK || write_spec(info, buf_slice(&extra), &spec) != ST_OK)
        return NULL;
    return copy(info, token, buf_slice(&extra), slice_sub(buf_slice(&spec), 1, spec.len - 2));
}

struct tier_user *tier_user_ref(struct tier_user *user)
{
    user->refs++;
    return user;
}

void tier_user_unref(struct tier_user *user)
{
    if (!user)
        return;
    assert(user->refs);
    if (--user->refs)
        return;
    explicit_bzero(user, user->bytes);
    free(user);
}
