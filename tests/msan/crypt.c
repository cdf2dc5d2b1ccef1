/* libcrypt, as the memory sanitizer has to see it: hashes of passwords are defined. */
#include <crypt.h>
#include <sanitizer/msan_interface.h>

/* Names that the linker makes from libcrypt's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name

char *REAL(crypt_rn)(const char *phrase, const char *setting, void *data, int bytes);
char *WRAP(crypt_rn)(const char *phrase, const char *setting, void *data, int bytes);
char *REAL(crypt_gensalt_rn)(const char *prefix, unsigned long count, const char *random,
                             int random_bytes, char *ret_setting, int bytes);
char *WRAP(crypt_gensalt_rn)(const char *prefix, unsigned long count, const char *random,
                             int random_bytes, char *ret_setting, int bytes);

static char *defined(char *text)
{
    if (text)
        __msan_unpoison_string(text);
    return text;
}

char *WRAP(crypt_rn)(const char *phrase, const char *setting, void *data, int bytes)
{
    __msan_scoped_disable_interceptor_checks(); /* checks of what it passes to the C library */
    char *hash = REAL(crypt_rn)(phrase, setting, data, bytes);
    __msan_scoped_enable_interceptor_checks();
    return defined(hash);
}

char *WRAP(crypt_gensalt_rn)(const char *prefix, unsigned long count, const char *random,
                             int random_bytes, char *ret_setting, int bytes)
{
    __msan_check_mem_is_initialized(random, (size_t)random_bytes);
    return defined(REAL(crypt_gensalt_rn)(prefix, count, random, random_bytes, ret_setting, bytes));
}
