#include "kube/types/validate/names.h"

#include "kube/types/validate/address.h"

#include <stdio.h>
#include <string.h>

#define LABEL "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

static void add_too_long(char why[NAME_ERROR_BYTES], struct slice text, size_t max)
{
    char rule[64];
    if (text.len <= max)
        return;
    snprintf(rule, sizeof(rule), "must be no more than %zu characters", max);
    name_add_reason(why, rule);
}

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/* Whether there is at least one character, and each is a letter, a digit or one of `extra`. */
static bool is_made_of(struct slice text, bool (*letter)(uint8_t c), const char *extra)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (!letter(c) && !is_digit(c) && !(c && strchr(extra, c)))
            return false;
    }
    return text.len;
}

static bool has_letter(struct slice text)
{
    size_t i = 0;
    while (i < text.len && !is_lower(text.ptr[i]))
        i++;
    return i < text.len;
}

static bool has_pair(struct slice text, uint8_t c)
{
    for (size_t i = 1; i < text.len; i++) {
        if (text.ptr[i] == c && text.ptr[i - 1] == c)
            return true;
    }
    return false;
}

bool port_name_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    add_too_long(why, name, 15);
    if (!is_made_of(name, is_lower, "-"))
        name_add_reason(why,
                        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    if (!has_letter(name))
        name_add_reason(why, "must contain at least one letter (a-z)");
    if (has_pair(name, '-'))
        name_add_reason(why, "must not contain consecutive hyphens");
    if (name.len && (name.ptr[0] == '-' || name.ptr[name.len - 1] == '-'))
        name_add_reason(why, "must not begin or end with a hyphen");
    return !why[0];
}

bool config_key_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    add_too_long(why, name, 253);
    if (!is_made_of(name, is_letter, "-._"))
        name_add_reason(
            why,
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
            "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')");
    /* Names that would lead out of a directory. */
    if (slice_is(name, "."))
        name_add_reason(why, "must not be '.'");
    else if (slice_is(name, ".."))
        name_add_reason(why, "must not be '..'");
    else if (name.len > 2 && memcmp(name.ptr, "..", 2) == 0)
        name_add_reason(why, "must not start with '..'");
    return !why[0];
}

bool env_name_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    size_t i = 0;
    why[0] = '\0';
    if (!name.len)
        name_add_reason(why, "environment variable name must be non-empty");
    while (i < name.len && name.ptr[i] >= ' ' && name.ptr[i] <= '~' && name.ptr[i] != '=')
        i++;
    if (i < name.len)
        name_add_reason(
            why,
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='");
    return !why[0];
}

bool wildcard_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    char ignored[NAME_ERROR_BYTES];
    bool star = name.len > 2 && memcmp(name.ptr, "*.", 2) == 0;
    why[0] = '\0';
    add_too_long(why, name, 253);
    /* The length of the rest is not a reason of its own. */
    struct slice rest = star ? slice_sub(name, 2, size_min(name.len - 2, 200)) : SLICE_EMPTY;
    if (!star || !subdomain_valid(rest, ignored))
        name_add_reason(
            why, "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS "
                 "subdomain, which must consist of lower case alphanumeric characters, '-' or '.' "
                 "and end with an alphanumeric character (e.g. '*.example.com', regex used for "
                 "validation is '\\*\\." LABEL "(\\." LABEL ")*')");
    return !why[0];
}

static bool is_underscored(struct slice name)
{
    while (true) {
        const uint8_t *dot = name.len ? memchr(name.ptr, '.', name.len) : NULL;
        size_t len = dot ? (size_t)(dot - name.ptr) : name.len;
        struct slice label = slice_sub(name, 0, len);
        /* One underscore may precede the first letter or digit of a label. */
        if (label.len && label.ptr[0] == '_')
            label = slice_sub(label, 1, label.len - 1);
        if (!(is_made_of(label, is_lower, "-_") &&
              (is_lower(label.ptr[0]) || is_digit(label.ptr[0])) &&
              (is_lower(label.ptr[label.len - 1]) || is_digit(label.ptr[label.len - 1]))))
            return false;
        if (!dot)
            return true;
        name = slice_sub(name, len + 1, name.len - len - 1);
    }
}

#define UNDERSCORED "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"

bool underscored_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    add_too_long(why, name, 253);
    if (!is_underscored(name))
        name_add_reason(why,
                        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                        "characters, '_', '-' or '.', and must start and end with an alphanumeric "
                        "character (e.g. 'example.com', regex used for validation is '" UNDERSCORED
                        "(\\." UNDERSCORED ")*')");
    return !why[0];
}

bool segment_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    /* Within a path these two would lead to another directory; nothing more is reported of them. */
    if (slice_is(name, ".") || slice_is(name, "..")) {
        snprintf(why, NAME_ERROR_BYTES, "may not be '%.*s'", SLICE_ARGS(name));
        return false;
    }
    if (name.len && memchr(name.ptr, '/', name.len))
        name_add_reason(why, "may not contain '/'");
    if (name.len && memchr(name.ptr, '%', name.len))
        name_add_reason(why, "may not contain '%'");
    return !why[0];
}

bool percent_valid(struct slice text, char why[NAME_ERROR_BYTES])
{
    size_t i = 0;
    why[0] = '\0';
    while (i < text.len && is_digit(text.ptr[i]))
        i++;
    if (!i || i + 1 != text.len || text.ptr[i] != '%')
        name_add_reason(
            why, "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
                 "'1%',  or '93%', regex used for validation is '[0-9]+%')");
    return !why[0];
}

bool http_header_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    if (!is_made_of(name, is_letter, "-"))
        name_add_reason(why,
                        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                        "'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')");
    return !why[0];
}

bool ip_valid(struct slice text, char why[NAME_ERROR_BYTES])
{
    struct address a;
    why[0] = '\0';
    if (!address_read(text, &a))
        name_add_reason(why, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    else if (a.padded)
        name_add_reason(why, "must not have leading 0s");
    else if (a.mapped)
        name_add_reason(why, "must not be an IPv4-mapped IPv6 address");
    return !why[0];
}

bool cidr_valid(struct slice text, char why[NAME_ERROR_BYTES])
{
    struct address_block b;
    why[0] = '\0';
    if (!address_block_read(text, &b))
        name_add_reason(why, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    else if (b.first.padded || b.padded)
        name_add_reason(why, "must not have leading 0s in IP or prefix length");
    else if (b.first.mapped)
        name_add_reason(why, "must not have an IPv4-mapped IPv6 address");
    else if (!address_block_is_masked(&b))
        name_add_reason(why, "must not have bits set beyond the prefix length");
    return !why[0];
}
