#include "kube/custom/schema/formats.h"

#include "kube/types/object/name.h"

#include <arpa/inet.h>
#include <stdlib.h>

/* Copies to a C string, if it fits and has no NUL byte. */
static bool copy(struct slice text, char *to, size_t room)
{
    if (text.len >= room || (text.len && memchr(text.ptr, 0, text.len)))
        return false;
    slice_copy(to, text);
    to[text.len] = '\0';
    return true;
}

static bool is_ipv4(struct slice text)
{
    char c[64];
    struct in_addr address;
    return copy(text, c, sizeof(c)) && inet_pton(AF_INET, c, &address) == 1;
}

static bool is_ipv6(struct slice text)
{
    char c[64];
    struct in6_addr address;
    return copy(text, c, sizeof(c)) && inet_pton(AF_INET6, c, &address) == 1;
}

static bool is_cidr(struct slice text)
{
    char c[80];
    if (!copy(text, c, sizeof(c)))
        return false;
    const char *slash = strchr(c, '/');
    if (!slash)
        return false;
    size_t at = (size_t)(slash - c);
    struct slice address = slice_sub(text, 0, at);
    bool four = is_ipv4(address);
    char *end;
    unsigned long bits = strtoul(slash + 1, &end, 10);
    bool digits = slash[1] >= '0' && slash[1] <= '9' && !*end && (slash[1] != '0' || !slash[2]);
    return digits && (four || is_ipv6(address)) && bits <= (four ? 32 : 128);
}

/* Converts digits that were validated before. */
static int digits(struct slice text, size_t at, size_t count)
{
    int number = 0;
    for (size_t i = at; i < at + count; i++)
        number = number * 10 + (text.ptr[i] - '0');
    return number;
}

/* Checks "YYYY-MM-DD", whose form was validated before. */
static bool is_day(struct slice text)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (text.len < 10)
        return false;
    int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
    if (month < 1 || month > 12)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

static bool is_date_time(struct slice text)
{
    return is_day(text) && digits(text, 11, 2) < 24 && digits(text, 14, 2) < 60 &&
           digits(text, 17, 2) < 60;
}

static bool is_short_name(struct slice text)
{
    char why[NAME_ERROR_BYTES];
    return text.len && dns_label_valid(text, why);
}

static bool is_long_name(struct slice text)
{
    char why[NAME_ERROR_BYTES];
    return text.len && subdomain_valid(text, why);
}

#define UUID(third, fourth) "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?" third "-?" fourth "-?[0-9a-f]{12}$"
#define ANY "[0-9a-f]{4}"
#define NUMBER_UNIT "([0-9]+(\\.[0-9]*)?|\\.[0-9]+)"

/* Sorted by name. */
static const struct schema_format formats[] = {
    {"bsonobjectid", "^[0-9a-f]{24}$", NULL},
    {"byte", "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$", NULL},
    {"cidr", NULL, is_cidr},
    {"creditcard", "^[^0-9]*([0-9][^0-9]*){13,16}$", NULL},
    {"date", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", is_day},
    {"datetime",
     "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?"
     "([Zz]|[+-][0-9]{2}:[0-9]{2})$",
     is_date_time},
    {"duration",
     "^([+-]?(0|(" NUMBER_UNIT "(ns|us|\\x{b5}s|\\x{3bc}s|ms|s|m|h))+)|"
     "[0-9]+ *(ns|nano|nanosecond|us|\\x{b5}s|micro|microsecond|ms|milli|millisecond|s|sec|second|"
     "m|min|minute|h|hr|hour|d|day|w|wk|week)s?)$",
     NULL},
    {"email", "^[^\\s@<>]+@[^\\s@<>]+$|^.*<[^\\s@<>]+@[^\\s@<>]+>$", NULL},
    {"hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", NULL},
    {"hostname",
     "^([a-zA-Z0-9\\x{80}-\\x{10ffff}]([a-zA-Z0-9\\x{80}-\\x{10ffff}-]{0,61}"
     "[a-zA-Z0-9\\x{80}-\\x{10ffff}])?)"
     "(\\.[a-zA-Z0-9\\x{80}-\\x{10ffff}]([a-zA-Z0-9\\x{80}-\\x{10ffff}-]{0,61}"
     "[a-zA-Z0-9\\x{80}-\\x{10ffff}])?)*\\.?$",
     NULL},
    {"ipv4", NULL, is_ipv4},
    {"ipv6", NULL, is_ipv6},
    {"isbn", NULL, NULL},
    {"isbn10", NULL, NULL},
    {"isbn13", NULL, NULL},
    {"k8slongname", NULL, is_long_name},
    {"k8sshortname", NULL, is_short_name},
    {"mac",
     "(?i)^([0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{2}(:[0-9a-f]{2}){7}|[0-9a-f]{2}(:[0-9a-f]{2}){19}"
     "|[0-9a-f]{2}(-[0-9a-f]{2}){5}|[0-9a-f]{2}(-[0-9a-f]{2}){7}|"
     "[0-9a-f]{4}(\\.[0-9a-f]{4}){2}|[0-9a-f]{4}(\\.[0-9a-f]{4}){3})$",
     NULL},
    {"password", NULL, NULL},
    {"rgbcolor",
     "^rgb\\(\\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\\s*,"
     "\\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\\s*,"
     "\\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\\s*\\)$",
     NULL},
    {"ssn", "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$", NULL},
    {"uri", "^(/|[a-zA-Z][a-zA-Z0-9+.-]*:)[^\\x00-\\x20\\x7f]*$", NULL},
    {"uuid", UUID(ANY, ANY), NULL},
    {"uuid3", UUID("3[0-9a-f]{3}", ANY), NULL},
    {"uuid4", UUID("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), NULL},
    {"uuid5", UUID("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), NULL},
};

static int by_name(const void *key, const void *row)
{
    return strcmp(key, ((const struct schema_format *)row)->name);
}

const struct schema_format *schema_format_find(struct slice name)
{
    char plain[32];
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '-')
            continue;
        if (len == sizeof(plain) - 1)
            return NULL;
        plain[len++] = (char)name.ptr[i];
    }
    plain[len] = '\0';
    return bsearch(plain, formats, COUNT_OF(formats), sizeof(formats[0]), by_name);
}
