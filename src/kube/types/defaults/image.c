#include "kube/types/defaults/image.h"

#include <string.h>

static bool is_lower(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_letter(uint8_t c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/* The first part before a byte, which is removed from the text with it; all of it if there is none.
 */
static struct slice take_until(struct slice *text, char end, bool *ret_found)
{
    const uint8_t *at = text->len ? memchr(text->ptr, end, text->len) : NULL;
    size_t len = at ? (size_t)(at - text->ptr) : text->len;
    struct slice part = slice_sub(*text, 0, len);
    *ret_found = at;
    *text = slice_sub(*text, at ? len + 1 : len, at ? text->len - len - 1 : 0);
    return part;
}

/* Lower-case letters and digits, separated by one ".", one or two "_", or any number of "-". */
static bool component_valid(struct slice text)
{
    size_t i = 0;
    while (i < text.len) {
        size_t start = i;
        while (i < text.len && is_lower(text.ptr[i]))
            i++;
        if (i == start)
            return false;
        if (i == text.len)
            return true;
        uint8_t c = text.ptr[i];
        size_t most = c == '.' ? 1 : c == '_' ? 2 : c == '-' ? text.len : 0, begin = i;
        while (i < text.len && text.ptr[i] == c)
            i++;
        if (i - begin > most)
            return false;
    }
    return false;
}

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool port_valid(struct slice port)
{
    for (size_t i = 0; i < port.len; i++) {
        if (port.ptr[i] < '0' || port.ptr[i] > '9')
            return false;
    }
    return port.len;
}

/* "[fe80::1]:5000" */
static bool address_valid(struct slice text)
{
    bool found;
    struct slice address = take_until(&text, ']', &found);
    for (size_t i = 1; i < address.len; i++) {
        uint8_t c = address.ptr[i];
        if (!is_hex(c) && !(c >= 'A' && c <= 'F') && c != ':')
            return false;
    }
    return found && address.len > 1 &&
           (!text.len || (text.ptr[0] == ':' && port_valid(slice_sub(text, 1, text.len - 1))));
}

/* A host name or address with a port. */
static bool domain_valid(struct slice text)
{
    bool has_port, has_more;
    if (text.len && text.ptr[0] == '[')
        return address_valid(text);
    struct slice host = take_until(&text, ':', &has_port);
    if (has_port && !port_valid(text))
        return false;
    do {
        struct slice label = take_until(&host, '.', &has_more);
        if (!label.len || !is_letter(label.ptr[0]) || !is_letter(label.ptr[label.len - 1]))
            return false;
        for (size_t i = 0; i < label.len; i++) {
            if (!is_letter(label.ptr[i]) && label.ptr[i] != '-')
                return false;
        }
    } while (has_more);
    return true;
}

/* The part before the first "/" is a domain if it could not be the name of a user. */
static bool is_domain(struct slice first)
{
    bool upper = false, special = slice_is(first, "localhost");
    for (size_t i = 0; i < first.len; i++) {
        upper |= first.ptr[i] >= 'A' && first.ptr[i] <= 'Z';
        special |= first.ptr[i] == '.' || first.ptr[i] == ':';
    }
    return upper || special;
}

/* 64 hexadecimal digits are the digest of an image, not a name. */
static bool is_bare_digest(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!is_hex(name.ptr[i]))
            return false;
    }
    return name.len == 64;
}

static bool name_valid(struct slice name)
{
    bool more;
    struct slice rest = name, first = take_until(&rest, '/', &more);
    if (is_bare_digest(name))
        return false;
    if (!more || !is_domain(first))
        rest = name;
    else if (!domain_valid(first))
        return false;
    do {
        if (!component_valid(take_until(&rest, '/', &more)))
            return false;
    } while (more);
    return true;
}

static bool tag_valid(struct slice tag)
{
    enum { TAG_BYTES_MAX = 128 };
    if (!tag.len || tag.len > TAG_BYTES_MAX || tag.ptr[0] == '.' || tag.ptr[0] == '-')
        return false;
    for (size_t i = 0; i < tag.len; i++) {
        uint8_t c = tag.ptr[i];
        if (!is_letter(c) && c != '_' && c != '.' && c != '-')
            return false;
    }
    return true;
}

/* "sha256:" and 64 hexadecimal digits, or another algorithm and at least 32. */
static bool digest_valid(struct slice digest)
{
    bool found;
    struct slice algorithm = take_until(&digest, ':', &found);
    bool sha256 = slice_is(algorithm, "sha256");
    if (!found || !algorithm.len || (sha256 ? digest.len != 64 : digest.len < 32))
        return false;
    for (size_t i = 0; i < digest.len; i++) {
        if (!is_hex(digest.ptr[i]))
            return false;
    }
    return true;
}

/* The ":" before the tag: the last one, unless a "/" follows, which makes it a port. */
static size_t tag_at(struct slice name)
{
    for (size_t i = name.len; i-- > 0;) {
        if (name.ptr[i] == ':')
            return i;
        if (name.ptr[i] == '/')
            break;
    }
    return name.len;
}

bool image_is_latest(struct slice reference)
{
    enum { NAME_BYTES_MAX = 255 };
    bool has_digest;
    struct slice rest = reference, name = take_until(&rest, '@', &has_digest);
    size_t at = tag_at(name);
    bool has_tag = at < name.len;
    struct slice tag = has_tag ? slice_sub(name, at + 1, name.len - at - 1) : SLICE_EMPTY;
    name = slice_sub(name, 0, at);
    if (!name.len || name.len > NAME_BYTES_MAX || !name_valid(name) ||
        (has_tag && !tag_valid(tag)) || (has_digest && !digest_valid(rest)))
        return false;
    return has_tag ? slice_is(tag, "latest") : !has_digest;
}
