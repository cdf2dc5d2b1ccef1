#include "cmd/names/assets.h"

#include "base/error.h"
#include "base/macros.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, DIR_MODE = 0777 };

static enum status fail(struct error *error, const char *path)
{
    return error_set(error, ST_IO, "%.400s: %s", path, strerror(errno));
}

/* Joins two parts of a path. False: it is too long. */
static bool join(char ret_path[PATH_MAX], const char *dir, const char *name)
{
    int len = snprintf(ret_path, PATH_MAX, "%s/%s", dir, name);
    return len > 0 && len < PATH_MAX;
}

/* -- Where -- */

/* PREFIX/libexec/vigil for PREFIX/bin/vigil, where `make install` has placed the links. */
static bool find_installed(const char *program, char ret_dir[PATH_MAX])
{
    char near[PATH_MAX], link[PATH_MAX];
    int len = snprintf(near, sizeof(near), "%s", program);
    char *slash = len > 0 && len < PATH_MAX ? strrchr(near, '/') : NULL;
    if (!slash)
        return false;
    *slash = '\0';
    char dir[PATH_MAX];
    return join(dir, near, "../libexec/vigil") && realpath(dir, ret_dir) &&
           join(link, ret_dir, "kube-apiserver") && access(link, X_OK) == 0;
}

static enum status find_own(char ret_dir[PATH_MAX], struct error *error)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data && *data == '/' && join(ret_dir, data, "vigil/assets"))
        return ST_OK;
    if (home && *home == '/' && join(ret_dir, home, ".local/share/vigil/assets"))
        return ST_OK;
    return error_set(error, ST_INVALID, "HOME is not set; name a directory: vigil assets DIR");
}

/* Makes the directory and those above it. */
static enum status make_dirs(const char *dir, struct error *error)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s", dir) >= PATH_MAX)
        return error_set(error, ST_INVALID, "the path is too long");
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(path, DIR_MODE) != 0 && errno != EEXIST)
            return fail(error, path);
        *at = '/';
    }
    return mkdir(path, DIR_MODE) == 0 || errno == EEXIST ? ST_OK : fail(error, path);
}

/* -- The links -- */

/* A program of this name stays; a link is replaced in one step, so that tests that start servers at
 * the same time always find one. */
static enum status place(const char *dir, const char *name, const char *target, struct error *error)
{
    char path[PATH_MAX], fresh[PATH_MAX], unique[64];
    struct stat about;
    snprintf(unique, sizeof(unique), ".%s.%ld", name, (long)getpid());
    if (!join(path, dir, name) || !join(fresh, dir, unique))
        return error_set(error, ST_INVALID, "the path is too long");
    if (lstat(path, &about) == 0 && !S_ISLNK(about.st_mode))
        return error_set(error, ST_IN_USE,
                         "%.300s exists and is not a link; choose another directory", path);
    if (symlink(target, fresh) != 0)
        return fail(error, fresh);
    if (rename(fresh, path) == 0)
        return ST_OK;
    enum status status = fail(error, path);
    (void)unlink(fresh);
    return status;
}

/* The first kubectl in PATH. envtest needs one only for tests that call it. */
static bool find_kubectl(char ret_path[PATH_MAX])
{
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t len = strcspn(at, ":");
        int made = snprintf(ret_path, PATH_MAX, "%.*s/kubectl", (int)len, at);
        if (*at == '/' && made < PATH_MAX && access(ret_path, X_OK) == 0)
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

static enum status write_links(const char *dir, const char *program, struct error *error)
{
    char kubectl[PATH_MAX], own[PATH_MAX], there[PATH_MAX];
    TRY(make_dirs(dir, error));
    TRY(place(dir, "etcd", program, error));
    TRY(place(dir, "kube-apiserver", program, error));
    if (!find_kubectl(kubectl))
        return ST_OK;
    /* With the directory itself in PATH the link would point to itself. */
    if (realpath(dir, own) && join(there, own, "kubectl") && strcmp(there, kubectl) == 0)
        return ST_OK;
    return place(dir, "kubectl", kubectl, error);
}

/* -- The command -- */

static enum status make(const char *given, char ret_dir[PATH_MAX], struct error *error)
{
    char program[PATH_MAX], dir[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (len < 0)
        return fail(error, "/proc/self/exe");
    program[len] = '\0';
    if (!given && find_installed(program, ret_dir))
        return ST_OK;
    if (given)
        snprintf(dir, sizeof(dir), "%s", given);
    else
        TRY(find_own(dir, error));
    TRY(write_links(dir, program, error));
    return realpath(dir, ret_dir) ? ST_OK : fail(error, dir);
}

int assets_main(int count, char **args)
{
    char dir[PATH_MAX];
    struct error error;
    if (count > 2 || (count == 2 && args[1][0] == '-')) {
        fprintf(stderr, "usage: vigil assets [DIR]\n");
        return EXIT_USAGE;
    }
    if (count == 2 && (!*args[1] || strlen(args[1]) >= PATH_MAX)) {
        fprintf(stderr, "vigil assets: the name of the directory is empty or too long\n");
        return EXIT_USAGE;
    }
    if (make(count == 2 ? args[1] : NULL, dir, &error) != ST_OK) {
        fprintf(stderr, "vigil assets: %s\n", error.text);
        return EXIT_FAILED;
    }
    printf("%s\n", dir);
    return EXIT_OK;
}
