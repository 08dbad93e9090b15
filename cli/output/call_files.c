/* call_files.c - see call_files.h. */
#include "cli/output/call_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/file.h"

/* Folders in a folder that are looked into; a model has two levels at most. */
enum { FOLDERS_DEEP = 12 };

/* What makes two names one file. */
typedef struct file_id {
    bool there, placed; /* file is known; folder is known */
    dev_t device, folder_device;
    ino_t inode, folder_inode;
    char name[NAME_MAX + 1]; /* in the folder */
} file_id;

/* A file that the call names. */
typedef struct named_file {
    const char *path;
    const char *option; /* NULL: an argument */
    file_use use;
} named_file;

static named_file *files;
static size_t file_count;
static const char *model_file; /* of --model-file; NULL: not given */

char *call_files_follow(const char *path) {
    char link[PATH_MAX], *name = grow(NULL, strlen(path) + 1);
    strcpy(name, path);
    for (int i = 0; i < 40; i++) {
        ssize_t n = readlink(name, link, sizeof link - 1);
        if (n < 0) return name;
        link[n] = 0;
        const char *slash = link[0] == '/' ? NULL : strrchr(name, '/');
        size_t folder = slash ? (size_t)(slash - name) + 1 : 0;
        name = grow(name, folder + (size_t)n + 1);
        strcpy(name + folder, link);
    }
    free(name);
    errno = ELOOP;
    return NULL;
}

/* False for what may be named twice: devices, pipes, folders. */
static bool identify(file_id *id, const char *path) {
    struct stat st;
    *id = (file_id){ .there = false };
    if (!stat(path, &st)) {
        if (!S_ISREG(st.st_mode)) return false;
        id->there = true;
        id->device = st.st_dev;
        id->inode = st.st_ino;
    }
    char *target = call_files_follow(path);
    if (!target) return id->there;
    char *slash = strrchr(target, '/');
    const char *name = slash ? slash + 1 : target;
    if (*name && strlen(name) <= NAME_MAX) {
        strcpy(id->name, name);
        if (slash) slash[slash == target] = 0;
        id->placed = !stat(slash ? target : ".", &st);
        id->folder_device = st.st_dev;
        id->folder_inode = st.st_ino;
    }
    free(target);
    return id->there || id->placed;
}

static bool same(const file_id *a, const file_id *b) {
    if (a->there && b->there) return a->device == b->device && a->inode == b->inode;
    return a->placed && b->placed && a->folder_device == b->folder_device &&
           a->folder_inode == b->folder_inode && !strcmp(a->name, b->name);
}

static bool ends_with(const char *name, const char *end) {
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && !strcasecmp(name + n - k, end);
}

/* Whether the name has one of the endings "a|b|c"; NULL is every ending. */
static bool has_ending(const char *name, const char *endings) {
    char end[32];
    if (!endings) return true;
    for (const char *at = endings; *at;) {
        const size_t n = strcspn(at, "|");
        snprintf(end, sizeof end, ".%.*s", (int)n, at);
        if (ends_with(name, end)) return true;
        at += n + (at[n] == '|');
    }
    return false;
}

/* Whether the output is a file with tensors of the .onnx file: its name stands in the file, as
 * StringStringEntryProto { key: "location", value: name }. */
static bool is_external_data(const file_id *output, const char *onnx) {
    static const char key[] = "\x0A\x08location\x12";
    pith__file file;
    pith_error err = PITH_ERROR_INIT;
    if (pith__file_open(&file, onnx, false, NULL, &err)) return false;
    const char *data = (const char *)file.data, *end = data + file.size;
    const char *slash = strrchr(onnx, '/');
    char path[PATH_MAX];
    bool found = false;
    for (const char *at = data;
         !found && (at = memmem(at, (size_t)(end - at), key, sizeof key - 1));) {
        file_id id;
        at += sizeof key - 1;
        const size_t left = (size_t)(end - at), n = left ? (unsigned char)*at : 0;
        if (!n || n > 127 || n >= left) continue;
        snprintf(path, sizeof path, "%.*s%.*s", slash ? (int)(slash - onnx + 1) : 0, onnx, (int)n,
                 at + 1);
        found = identify(&id, path) && same(&id, output);
    }
    pith__file_close(&file);
    return found;
}

/* Whether a model directory holds a network under a name that is looked for first: other .onnx
 * files in it are then not read unless --model-file names them. */
static bool has_named_network(const char *folder, int deep) {
    static const char *const names[] = {
        "model.onnx", "model.safetensors", "model.safetensors.index.json",
        "model.gguf", "pytorch_model.bin", "pytorch_model.bin.index.json"
    };
    DIR *dir = deep ? opendir(folder) : NULL;
    if (!dir) return false;
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(dir));) {
        struct stat st;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
            found = !strcmp(entry->d_name, names[i]);
        char *path = grow(NULL, strlen(folder) + strlen(entry->d_name) + 2);
        sprintf(path, "%s/%s", folder, entry->d_name);
        if (!found && !lstat(path, &st) && S_ISDIR(st.st_mode))
            found = has_named_network(path, deep - 1);
        free(path);
    }
    closedir(dir);
    return found;
}

/* Whether a file of a model directory is an .onnx file, or the data of one, that the directory does
 * not open: what another call wrote there. */
static bool is_other_network(const char *name) {
    static const char *const ends[] = { "", ".data", "_data" };
    const char *chosen = model_file ? strrchr(model_file, '/') : NULL;
    chosen = chosen ? chosen + 1 : model_file;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(name), k = strlen(ends[i]), stem = n - k;
        if (n < k + 5 || strcmp(name + stem, ends[i]) != 0 ||
            memcmp(name + stem - 5, ".onnx", 5) != 0)
            continue;
        if (stem == strlen("model.onnx") && !memcmp(name, "model.onnx", stem)) return false;
        return !chosen || strlen(chosen) != stem || memcmp(name, chosen, stem) != 0;
    }
    return false;
}

/* Whether the output, a file that is there, is one of those in the folder or below it. named: the
 * folder is a model's with a network that is found by its name. */
static bool in_folder(const file_id *output, const char *folder, const char *endings, bool named,
                      int deep) {
    DIR *dir = deep ? opendir(folder) : NULL;
    if (!dir) return false;
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(dir));) {
        struct stat st;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *path = grow(NULL, strlen(folder) + strlen(entry->d_name) + 2);
        sprintf(path, "%s/%s", folder, entry->d_name);
        if (!lstat(path, &st) && S_ISDIR(st.st_mode))
            found = in_folder(output, path, endings, named, deep - 1);
        else if (has_ending(entry->d_name, endings) && !stat(path, &st) && S_ISREG(st.st_mode) &&
                 !(named && is_other_network(entry->d_name)))
            found = (st.st_dev == output->device && st.st_ino == output->inode) ||
                    (!endings && ends_with(path, ".onnx") && is_external_data(output, path));
        free(path);
    }
    closedir(dir);
    return found;
}

/* Whether the output is the input, or one of the files that it stands for. */
static bool is_of_input(const command *c, const file_id *output, const named_file *input) {
    char place[PATH_MAX];
    pith_error err = PITH_ERROR_INIT;
    const char *path = input->path;
    file_id id;
    struct stat st;
    const bool model = input->use == FILE_MODEL;
    if (!strcmp(path, "-")) path = "/dev/stdin";
    if (model && !pith_model_locate(place, sizeof place, path, &err)) path = place;
    if (identify(&id, path) && same(&id, output)) return true;
    if (!output->there || stat(path, &st)) return false;
    if (S_ISDIR(st.st_mode))
        return in_folder(output, path, model ? NULL : c->reads,
                         model && has_named_network(path, FOLDERS_DEEP), FOLDERS_DEEP);
    return ends_with(path, ".onnx") && is_external_data(output, path);
}

static bool is_written(const named_file *f) {
    return f->use == FILE_WRITTEN || f->use == FILE_NETWORK;
}

static const char *dashes(const named_file *f) { return f->option ? "--" : ""; }
static const char *option_of(const named_file *f) { return f->option ? f->option : "the argument"; }

/* output NULL: a file of a folder, which the message names by its path. */
static int refuse(const command *c, const named_file *output, const char *path,
                  const named_file *other) {
    const char *what = is_written(other) ? "is an output too" : "is an input too";
    if (!output)
        return usage(c, "%s %s, as %s%s %s; write to another file", path, what, dashes(other),
                     option_of(other), other->path);
    return usage(c, "%s%s %s %s, as %s%s %s; write to another file", dashes(output),
                 option_of(output), path, what, dashes(other), option_of(other), other->path);
}

/* Standard output under any name, but not if it goes to a device such as /dev/null. */
static bool is_standard(const char *path) {
    struct stat st, standard;
    if (!strcmp(path, "-")) return true;
    return !fstat(STDOUT_FILENO, &standard) && !S_ISCHR(standard.st_mode) && !stat(path, &st) &&
           st.st_dev == standard.st_dev && st.st_ino == standard.st_ino;
}

/* Compares one file of an output with all that the call names. */
static int check_output(const command *c, const named_file *output, const char *path) {
    file_id id, other;
    const bool standard = is_standard(path);
    if (!standard && !identify(&id, path)) return -1;
    for (const named_file *f = files; f < files + file_count; f++) {
        /* In an output folder the verb replaces files of its own. */
        if (f == output || f->use == FOLDER_WRITTEN || (!output && !strcmp(f->path, path)))
            continue;
        bool clash = false;
        if (is_written(f))
            clash =
                standard ? is_standard(f->path) : identify(&other, f->path) && same(&id, &other);
        else if (!standard)
            clash = is_of_input(c, &id, f);
        if (clash) return refuse(c, output, path, f);
    }
    return -1;
}

/* A network is one or two files, of a name or in a folder. */
static int check_network(const command *c, const named_file *output) {
    static const char *const ends[] = { "", ".data", "/model.onnx", "/model.onnx.data" };
    int code = -1;
    for (size_t i = 0; code < 0 && i < sizeof ends / sizeof *ends; i++) {
        char *path = grow(NULL, strlen(output->path) + strlen(ends[i]) + 1);
        strcat(strcpy(path, output->path), ends[i]);
        code = check_output(c, output, path);
        free(path);
    }
    return code;
}

int call_files_check(const command *c, const char *path) {
    const int code = check_output(c, NULL, path);
    return code < 0 ? EXIT_DONE : code;
}

static void add(const char *path, const char *name, file_use use) {
    files = grow_for(files, file_count, sizeof *files);
    files[file_count++] = (named_file){ path, name, use };
}

/* The files of an option; an item of a list is FILE or NAME=FILE. */
static void add_option(const option *o, const void *settings) {
    const char *place = (const char *)settings + o->place;
    if (o->row->kind == OPTION_LIST) {
        const string_list *list = (const void *)place;
        for (size_t i = 0; i < list->count; i++) {
            const char *equals = strchr(list->items[i], '=');
            add(equals ? equals + 1 : list->items[i], o->row->name, o->row->file);
            if (equals) add(list->items[i], o->row->name, o->row->file);
        }
        return;
    }
    const char *path = *(const char *const *)(const void *)place;
    const char *otherwise = o->row->otherwise;
    if (!path && is_written(&(named_file){ .use = o->row->file }) && o->row->letter == 'o' &&
        otherwise && !strcmp(otherwise, "standard output"))
        path = "-";
    if (path && *path) add(path, o->row->name, o->row->file);
}

int call_files_declare(const command *c, const void *settings, const string_list *rest,
                       const char *config) {
    file_count = 0;
    free(files);
    files = NULL;
    for (const option *o = c->options; o->row || o->heading; o++)
        if (o->row && o->row->file != FILE_NONE && o->place != OPTION_NOWHERE)
            add_option(o, settings);
    model_file = NULL;
    for (const option *o = c->options; o->row || o->heading; o++)
        if (o->row && !strcmp(o->row->name, "model-file") && o->place != OPTION_NOWHERE)
            model_file = *(const char *const *)(const void *)((const char *)settings + o->place);
    if (config) add(config, option_rows[ROW_config].name, FILE_READ);
    const bool model = c->takes && !strcmp(c->takes, "MODEL");
    if (c->takes)
        for (size_t i = 0; i < rest->count; i++)
            add(rest->items[i], NULL, model ? FILE_MODEL : FILE_READ);
    int code = -1;
    for (size_t i = 0; code < 0 && i < file_count; i++) {
        if (!is_written(&files[i])) continue;
        code = files[i].use == FILE_NETWORK ? check_network(c, &files[i])
                                            : check_output(c, &files[i], files[i].path);
    }
    return code;
}
