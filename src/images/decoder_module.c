/* decoder_module.c - libpith_image.so is loaded when the first picture needs it, and stays; so is
 * libpith_heif.so.
 *
 * Without a path it is searched in the folder of the file that contains this code (libpith.so or a
 * program), in that folder's neighbour lib, as the two are installed, and in the folder libraries
 * were installed to. The first file that exists is taken; if it cannot be used, that is the error:
 * a broken module is not passed over. */
#include "images/decoder_module.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/file.h"
#include "base/os/shared_library.h"
#include "base/str.h"
#include "base/text_out.h"

#define MODULE_SYMBOL "pith_image_codecs"
enum { PLACES = 3 };

typedef struct module_kind {
    const char *file, *build, *library; /* what it takes to build it, and what it needs when it is
                                           loaded */
} module_kind;

enum { MODULE_IMAGE, MODULE_HEIF, MODULES };
static const module_kind kinds[MODULES] = {
    { "libpith_image.so", "build it with make", "build or install it again" },
    { "libpith_heif.so", "install the Debian package libheif-dev and build it with make",
      "install the Debian package libheif1" },
};
static const pith_image_module *_Atomic module_known[MODULES];

static int module_of(const char *format) {
    return !strcmp(format, "HEIC") || !strcmp(format, "AVIF") ? MODULE_HEIF : MODULE_IMAGE;
}

static pith_status module_check(const pith_image_module *module, const char *path,
                                pith_error *err) {
    if (module->abi != PITH_IMAGE_MODULE_ABI)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: the module has interface %u, this library needs %d; install the "
                          "module of libpith %d.%d.%d",
                          path, module->abi, PITH_IMAGE_MODULE_ABI, PITH_VERSION_MAJOR,
                          PITH_VERSION_MINOR, PITH_VERSION_PATCH);
    return PITH_OK;
}

/* The handle is never closed: decoders may be running. */
static pith_status module_load(const pith_image_module **module, const module_kind *kind,
                               const char *path, pith_error *err) {
    int saved = errno;
    PITH_TRY(pith__library_safe(err));
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = handle ? NULL : dlerror();
    const pith_image_module *found = handle ? dlsym(handle, MODULE_SYMBOL) : NULL;
    errno = saved;
    if (why)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s: cannot be loaded; %s (%s)", path,
                          kind->library, why);
    if (!found)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: not a module of libpith, it has no symbol " MODULE_SYMBOL
                          "; give the path of %s",
                          path, kind->file);
    PITH_TRY(module_check(found, path, err));
    *module = found;
    return PITH_OK;
}

/* The file that module_path stands for: in that folder; or that file, or beside it, if it is that
 * of another kind. */
static bool module_given(char *file, size_t size, const module_kind *kind, const char *path) {
    const char *slash = strrchr(path, '/');
    int length;
    if (pith__dir_exists(path))
        length = snprintf(file, size, "%s/%s", path, kind->file);
    else if (kind == &kinds[MODULE_HEIF] && strcmp(slash ? slash + 1 : path, kind->file) != 0)
        length =
            snprintf(file, size, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, kind->file);
    else
        length = snprintf(file, size, "%s", path);
    return length >= 0 && (size_t)length < size;
}

static pith_status module_load_given(const pith_image_module **module, const module_kind *kind,
                                     const char *path, pith_error *err) {
    char file[4096];
    if (!module_given(file, sizeof file, kind, path))
        return pith__fail(err, PITH_ERR_ARGUMENT, "module_path is longer than %zu bytes",
                          sizeof file - 1);
    /* Without a slash dlopen would search the system's folders. */
    if (!pith__file_exists(file))
        return pith__fail(err, PITH_ERR_NOT_FOUND, "%s: there is no module; give the path of %s",
                          file, kind->file);
    char here[sizeof file + 2];
    snprintf(here, sizeof here, "%s%s", strchr(file, '/') ? "" : "./", file);
    return module_load(module, kind, here, err);
}

typedef struct module_self {
    size_t visited;
    const char *file; /* "": the program itself, which is visited first */
} module_self;

/* Whether this code is a part of an object of the process. */
static int module_visit(struct dl_phdr_info *object, size_t size, void *user) {
    module_self *self = user;
    const uintptr_t here = (uintptr_t)&module_known;
    (void)size;
    self->file = self->visited++ ? object->dlpi_name : "";
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && here - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return 1;
    }
    return 0;
}

/* The folder of the file that contains this code, without a slash at its end; false if it is not
 * known. */
static bool module_own_folder(char *folder, size_t size) {
    module_self self = { 0, NULL };
    if (!dl_iterate_phdr(module_visit, &self)) return false;
    if (self.file[0]) {
        int length = snprintf(folder, size, "%s", self.file);
        if (length < 0 || (size_t)length >= size) return false;
    } else { /* the program itself, whose name here is what its caller called it */
        ssize_t length = readlink("/proc/self/exe", folder, size);
        if (length < 0 || (size_t)length >= size) return false;
        folder[length] = 0;
    }
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    return slash != NULL;
}

/* The i-th place to look in; false if there is none. */
static bool module_place(char *path, size_t size, const module_kind *kind, int i) {
    static const char *const beside[] = { "", PITH_LIBDIR_BESIDE "/" };
    char folder[4096];
    int length;
    if (i == PLACES - 1)
        length = snprintf(path, size, "%s/%s", PITH_LIBDIR, kind->file);
    else if (module_own_folder(folder, sizeof folder))
        length = snprintf(path, size, "%s/%s%s", folder, beside[i], kind->file);
    else
        return false;
    return length > 0 && (size_t)length < size;
}

static pith_status module_search(const pith_image_module **module, const module_kind *kind,
                                 const char *format, pith_error *err) {
    char file[4096], all[PITH_ERROR_MESSAGE_SIZE];
    pith__text_out places = pith__text_begin(all, sizeof all);
    for (int i = 0; i < PLACES; i++) {
        if (!module_place(file, sizeof file, kind, i)) continue;
        if (pith__file_exists(file)) return module_load(module, kind, file, err);
        pith__text_put(&places, "%s" PITH_CUT_FMT, places.used ? ", " : "",
                       PITH_CUT(pith__str_of(file), 250));
    }
    return pith__fail(
        err, PITH_ERR_NOT_FOUND,
        "%s pictures need the module %s, which is not there: %s; %s, or set module_path", format,
        kind->file, all, kind->build);
}

pith_status pith__picture_codec(const pith_image_codec **codec, const char *format,
                                const char *path, pith_error *err) {
    const pith_image_module *module = NULL;
    const int kind = module_of(format);
    if (path) {
        PITH_TRY(module_load_given(&module, &kinds[kind], path, err));
    } else if (!(module = atomic_load(&module_known[kind]))) {
        PITH_TRY(module_search(&module, &kinds[kind], format, err));
        atomic_store(&module_known[kind], module);
    }
    for (size_t i = 0; i < module->codec_count; i++) {
        if (strcmp(module->codecs[i].format, format)) continue;
        *codec = &module->codecs[i];
        return PITH_OK;
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "the module of decoders was built without %s",
                      format);
}

pith_status pith__picture_module_set(const pith_image_module *module, pith_error *err) {
    if (module) PITH_TRY(module_check(module, "pith_image_register", err));
    atomic_store(&module_known[MODULE_IMAGE], module);
    return PITH_OK;
}
