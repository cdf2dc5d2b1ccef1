#include "etcd/service/downgrade.h"

#include <stdio.h>

struct semantic_version {
    int64_t numbers[3];
};

/* Removes everything from the first `mark` on; false if that contains an invalid character. */
static bool cut_identifier(struct slice *text, uint8_t mark)
{
    const uint8_t *at = text->len ? memchr(text->ptr, mark, text->len) : NULL;
    if (!at)
        return true;
    size_t len = (size_t)(at - text->ptr);
    for (size_t i = len + 1; i < text->len; i++) {
        uint8_t c = text->ptr[i];
        bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && c != '-' && c != '.')
            return false;
    }
    *text = slice_sub(*text, 0, len);
    return true;
}

/* Removes a decimal number and the dot after it, if there is one, from the start of the text. */
static bool take_number(struct slice *text, int64_t *ret_number)
{
    size_t at = 0;
    *ret_number = 0;
    for (; at < text->len && text->ptr[at] != '.'; at++) {
        uint8_t c = text->ptr[at];
        if (c < '0' || c > '9' || __builtin_mul_overflow(*ret_number, 10, ret_number) ||
            __builtin_add_overflow(*ret_number, c - '0', ret_number))
            return false;
    }
    bool some = at > 0;
    at += at < text->len;
    *text = slice_sub(*text, at, text->len - at);
    return some;
}

static size_t count_dots(struct slice text)
{
    size_t dots = 0;
    for (size_t i = 0; i < text.len; i++)
        dots += text.ptr[i] == '.';
    return dots;
}

/* One dot is enough if the text has only numbers; it then means the same as with ".0" appended. */
static bool parse(struct slice text, struct semantic_version *ret_version)
{
    size_t given = text.len;
    if (!cut_identifier(&text, '+') || !cut_identifier(&text, '-'))
        return false;
    size_t dots = count_dots(text);
    if (dots != 2 && !(dots == 1 && text.len == given))
        return false;
    if (text.len == 0 || text.ptr[text.len - 1] == '.')
        return false;
    *ret_version = (struct semantic_version){0};
    for (size_t i = 0; i <= dots; i++) {
        if (!take_number(&text, &ret_version->numbers[i]))
            return false;
    }
    return true;
}

enum status downgrade_check(struct slice wanted, const char *cluster_version,
                            char ret_target[DOWNGRADE_TARGET_BYTES])
{
    struct semantic_version target, cluster;
    if (!parse(wanted, &target))
        return ST_WRONG_DOWNGRADE_VERSION_FORMAT;
    if (!parse(slice_from_text(cluster_version), &cluster))
        return ST_CLUSTER_VERSION_UNAVAILABLE;
    if (target.numbers[0] != cluster.numbers[0] || target.numbers[1] != cluster.numbers[1] - 1)
        return ST_INVALID_DOWNGRADE_TARGET_VERSION;
    snprintf(ret_target, DOWNGRADE_TARGET_BYTES, "%lld.%lld.0", (long long)target.numbers[0],
             (long long)target.numbers[1]);
    return ST_OK;
}
