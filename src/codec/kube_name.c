#include "codec/kube_name.h"

#include <stdio.h>
#include <string.h>

#define LABEL_PATTERN "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define DNS_LABEL_PATTERN "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define LABEL_RULE                                                                              \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "      \
    "validation is '" LABEL_PATTERN "')"
#define SUBDOMAIN_RULE                                                                           \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or " \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "     \
    "used for validation is '" DNS_LABEL_PATTERN "(\\." DNS_LABEL_PATTERN ")*')"
#define DNS_LABEL_RULE                                                                           \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "   \
    "used for validation is '" DNS_LABEL_PATTERN "')"

#define DNS_1035_RULE                                                                            \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an " \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "         \
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

enum { LABEL_BYTES_MAX = 63, SUBDOMAIN_BYTES_MAX = 253 };

static bool is_lower(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alphanumeric(uint8_t c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/*
 * Whether the text is not empty, begins and ends with a character for which is_end is true, and
 * otherwise also has characters of `extra`.
 */
static bool is_made_of(struct slice text, bool (*is_end)(uint8_t c), const char *extra)
{
    if (!text.len || !is_end(text.ptr[0]) || !is_end(text.ptr[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_end(text.ptr[i]) && !(text.ptr[i] && strchr(extra, text.ptr[i])))
            return false;
    }
    return true;
}

static bool is_subdomain(struct slice text)
{
    while (text.len) {
        const uint8_t *dot = memchr(text.ptr, '.', text.len);
        size_t len = dot ? (size_t)(dot - text.ptr) : text.len;
        if (!is_made_of(slice_sub(text, 0, len), is_lower, "-"))
            return false;
        if (!dot)
            return true;
        text = slice_sub(text, len + 1, text.len - len - 1);
    }
    return false;
}

static void add(char why[NAME_ERROR_BYTES], const char *part, const char *text)
{
    size_t len = strlen(why);
    int added = snprintf(why + len, NAME_ERROR_BYTES - len, "%s%s%s", len ? "; " : "", part, text);
    assert(added > 0 && len + (size_t)added < NAME_ERROR_BYTES);
}

void name_add_reason(char why[NAME_ERROR_BYTES], const char *text)
{
    add(why, "", text);
}

struct slice name_cut_reason(struct slice *why)
{
    const uint8_t *end = why->len ? memmem(why->ptr, why->len, "; ", strlen("; ")) : NULL;
    size_t len = end ? (size_t)(end - why->ptr) : why->len;
    size_t next = end ? len + strlen("; ") : len;
    struct slice reason = slice_sub(*why, 0, len);
    *why = slice_sub(*why, next, why->len - next);
    return reason;
}

/*
 * Kubernetes' messages say "characters" for names and "bytes" for labels; both limits count bytes.
 */
static void add_too_long(char why[NAME_ERROR_BYTES], const char *part, struct slice text, int max,
                         const char *unit)
{
    char rule[64];
    if (text.len <= (size_t)max)
        return;
    snprintf(rule, sizeof(rule), "must be no more than %d %s", max, unit);
    add(why, part, rule);
}

static void check_subdomain(struct slice name, const char *part, char why[NAME_ERROR_BYTES])
{
    add_too_long(why, part, name, SUBDOMAIN_BYTES_MAX, *part ? "bytes" : "characters");
    if (!is_subdomain(name))
        add(why, part, SUBDOMAIN_RULE);
}

bool subdomain_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    check_subdomain(name, "", why);
    return !why[0];
}

bool dns_label_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    add_too_long(why, "", name, LABEL_BYTES_MAX, "characters");
    if (!is_made_of(name, is_lower, "-"))
        add(why, "", is_subdomain(name) ? "must not contain dots" : DNS_LABEL_RULE);
    return !why[0];
}

static void check_name_part(struct slice name, char why[NAME_ERROR_BYTES])
{
    if (!name.len)
        add(why, "name part ", "must be non-empty");
    add_too_long(why, "name part ", name, LABEL_BYTES_MAX, "bytes");
    if (!is_made_of(name, is_alphanumeric, "-_."))
        add(why, "name part ", LABEL_RULE);
}

bool label_key_valid(struct slice key, char why[NAME_ERROR_BYTES])
{
    const uint8_t *slash = key.len ? memchr(key.ptr, '/', key.len) : NULL;
    why[0] = '\0';
    if (!slash) {
        check_name_part(key, why);
        return !why[0];
    }
    struct slice prefix = slice_sub(key, 0, (size_t)(slash - key.ptr));
    struct slice name = slice_sub(key, prefix.len + 1, key.len - prefix.len - 1);
    if (name.len && memchr(name.ptr, '/', name.len)) {
        add(why, "a valid label key ",
            LABEL_RULE
            " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
        return false;
    }
    if (prefix.len)
        check_subdomain(prefix, "prefix part ", why);
    else
        add(why, "prefix part ", "must be non-empty");
    check_name_part(name, why);
    return !why[0];
}

bool label_value_valid(struct slice value, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    add_too_long(why, "", value, LABEL_BYTES_MAX, "bytes");
    if (value.len && !is_made_of(value, is_alphanumeric, "-_."))
        add(why, "",
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
            "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            "'my_value',  or '12345', regex used for validation is '(" LABEL_PATTERN ")?')");
    return !why[0];
}

bool dns_1035_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    add_too_long(why, "", name, LABEL_BYTES_MAX, "characters");
    if (!is_made_of(name, is_lower, "-") || (name.ptr[0] >= '0' && name.ptr[0] <= '9'))
        add(why, "", DNS_1035_RULE);
    return !why[0];
}
