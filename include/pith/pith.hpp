/* pith.hpp - Pith for C++17: the C interface with objects that free themselves, and exceptions.
 *
 *     pith::Model model("all-MiniLM-L6-v2");
 *     pith::Vectors v = model.embed({"a cat sat on the mat", "interest rates rose"});
 *     std::cout << v.dim() << " numbers, the first is " << v[0][0] << "\n";
 *
 * Each class owns one handle of the C interface; get() returns it. Objects can be moved and not
 * copied. One that was moved from, and a default-constructed one, may only be destroyed or assigned
 * to. What a C function says of threads, life times and results holds for the method that calls it;
 * so a Session must not outlive its Model.
 *
 * A failed call throws pith::Error. Options are the structs of C:
 * pith::options<pith_embed_options>() gives one with its defaults. Texts are std::string_view:
 * vectors, arrays and braced lists of what converts to it. */
#ifndef PITH_PITH_HPP
#define PITH_PITH_HPP

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pith/detect.h>
#include <pith/image.h>
#include <pith/pith.h>

namespace pith {

/* A call that failed. what() says what is wrong, where, and what to do. */
class Error : public std::runtime_error {
  public:
    explicit Error(const pith_error &err) : std::runtime_error(err.message), code_(err.code) {}
    pith_status code() const noexcept { return code_; }

  private:
    pith_status code_;
};

namespace detail {

inline pith_error no_error() noexcept {
    pith_error err = PITH_ERROR_INIT;
    return err;
}

inline void check(pith_status status, const pith_error &err) {
    if (status != PITH_OK) throw Error(err);
}

/* Calls call(&err), and throws if it fails. */
template <class Call> void attempt(Call &&call) {
    pith_error err = no_error();
    check(call(&err), err);
}

template <auto Free> struct Closer {
    template <class T> void operator()(T *handle) const noexcept { Free(handle); }
};
template <class T, auto Free> using Handle = std::unique_ptr<T, Closer<Free>>;

} // namespace detail

/* ---- options ---- */

/* The defaults of an option struct: pith::options<pith_open_options>(). */
template <class Options> Options options();

#define PITH_HPP_OPTIONS(type, init)                                                               \
    template <> inline type options<type>() {                                                      \
        type o = init;                                                                             \
        return o;                                                                                  \
    }
PITH_HPP_OPTIONS(pith_call, PITH_CALL_INIT)
PITH_HPP_OPTIONS(pith_open_options, PITH_OPEN_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_source_options, PITH_SOURCE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_operator, PITH_OPERATOR_INIT)
PITH_HPP_OPTIONS(pith_check_options, PITH_CHECK_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_calibrate_options, PITH_CALIBRATE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_export_options, PITH_EXPORT_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_convert_options, PITH_CONVERT_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_optimize_options, PITH_OPTIMIZE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_quantize_model_options, PITH_QUANTIZE_MODEL_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_embed_options, PITH_EMBED_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_batching, PITH_BATCHING_INIT)
PITH_HPP_OPTIONS(pith_encode_options, PITH_ENCODE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_encode_memory, PITH_ENCODE_MEMORY_INIT)
PITH_HPP_OPTIONS(pith_score_options, PITH_SCORE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_queue_options, PITH_QUEUE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_request, PITH_REQUEST_INIT)
PITH_HPP_OPTIONS(pith_queue_statistics, PITH_QUEUE_STATISTICS_INIT)
PITH_HPP_OPTIONS(pith_search_index_options, PITH_SEARCH_INDEX_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_search_options, PITH_SEARCH_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_run_options, PITH_RUN_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_session_pool_options, PITH_SESSION_POOL_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_tokenize_options, PITH_TOKENIZE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_chunk_options, PITH_CHUNK_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_quantize_options, PITH_QUANTIZE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_bm25_options, PITH_BM25_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_image_options, PITH_IMAGE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_image_encode_options, PITH_IMAGE_ENCODE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_image_resize_options, PITH_IMAGE_RESIZE_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_embed_images_options, PITH_EMBED_IMAGES_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_detect_options, PITH_DETECT_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_model_info, PITH_MODEL_INFO_INIT)
PITH_HPP_OPTIONS(pith_runtime_options, PITH_RUNTIME_OPTIONS_INIT)
PITH_HPP_OPTIONS(pith_runtime_report, PITH_RUNTIME_REPORT_INIT)
PITH_HPP_OPTIONS(pith_statistics, PITH_STATISTICS_INIT)
PITH_HPP_OPTIONS(pith_cpu_info, PITH_CPU_INFO_INIT)
PITH_HPP_OPTIONS(pith_build_info, PITH_BUILD_INFO_INIT)
PITH_HPP_OPTIONS(pith_memory_info, PITH_MEMORY_INFO_INIT)
#undef PITH_HPP_OPTIONS

/* ---- ending a call early ---- */

/* A flag that ends calls, which any thread or a signal's handler may set. The calls that look at it
 * are those whose options have its address:
 *
 *     pith::Cancel cancel;
 *     auto o = pith::options<pith_embed_options>();
 *     o.call.cancel = cancel.flag();
 *
 * It must outlive them. They throw an Error of PITH_ERR_CANCELLED. */
class Cancel {
  public:
    Cancel() = default;
    Cancel(const Cancel &) = delete;
    Cancel &operator=(const Cancel &) = delete;
    void request() noexcept { set(1); }
    /* Calls that begin from now on run again. */
    void reset() noexcept { set(0); }
    bool requested() const noexcept { return __atomic_load_n(&flag_, __ATOMIC_RELAXED) != 0; }
    const volatile int *flag() const noexcept { return &flag_; }

  private:
    void set(int value) noexcept { __atomic_store_n(&flag_, value, __ATOMIC_RELAXED); }
    volatile int flag_ = 0;
};

/* A time as call.deadline_ns needs it. A call that is not done then throws an Error of
 * PITH_ERR_DEADLINE. */
inline std::uint64_t deadline(std::chrono::steady_clock::time_point at) noexcept {
    const auto now = std::chrono::steady_clock::now();
    if (at <= now) return 1; /* long past; 0 would be no deadline */
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(at - now);
    return pith_clock_now() + static_cast<std::uint64_t>(left.count());
}
/* So long from now. */
template <class Rep, class Period>
std::uint64_t deadline(std::chrono::duration<Rep, Period> in) noexcept {
    return deadline(std::chrono::steady_clock::now() +
                    std::chrono::duration_cast<std::chrono::steady_clock::duration>(in));
}
inline std::uint64_t clock_now() noexcept { return pith_clock_now(); }

/* ---- where results go ---- */

/* Takes what a call writes, piece by piece: a string, a stream, or a function. The function gets
 * each piece and returns whether it could be written; if not, the call throws an Error of
 * PITH_ERR_IO. What it throws itself is thrown again when the call has ended. */
class Writer {
  public:
    using Write = std::function<bool(std::string_view piece)>;
    using Begin = std::function<void(std::uint64_t total)>;

    /* begin: gets the number of all bytes first, by calls that know it. */
    explicit Writer(Write write, Begin begin = {})
        : write_(std::move(write)), begin_(std::move(begin)) {}
    /* Both must outlive the writer. */
    explicit Writer(std::ostream &out)
        : write_([&out](std::string_view piece) {
              out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
              return out.good();
          }) {}
    explicit Writer(std::string &text)
        : write_([&text](std::string_view piece) {
              text.append(piece);
              return true;
          }) {}
    Writer(const Writer &) = delete;
    Writer &operator=(const Writer &) = delete;

    /* For functions of C; points into this object. Call finish when the function has returned. */
    const pith_writer *get() const noexcept { return &writer_; }
    /* Throws what the function threw. */
    void finish() {
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    }

  private:
    /* An exception must not pass through functions of C. */
    template <class Call> std::int32_t guarded(Call &&call) noexcept {
        try {
            return call() ? 0 : 1;
        } catch (...) {
            thrown_ = std::current_exception();
            return 1;
        }
    }
    static std::int32_t write(void *user, const void *data, std::size_t size) noexcept {
        auto *self = static_cast<Writer *>(user);
        return self->guarded(
            [&] { return self->write_(std::string_view(static_cast<const char *>(data), size)); });
    }
    static std::int32_t begin(void *user, std::uint64_t total) noexcept {
        auto *self = static_cast<Writer *>(user);
        return self->guarded([&] {
            if (self->begin_) self->begin_(total);
            return true;
        });
    }
    Write write_;
    Begin begin_;
    std::exception_ptr thrown_;
    pith_writer writer_{ write, begin, this };
};

namespace detail {

/* Calls call(writer, err) of a function of C. */
template <class Call> void write_to(Writer &to, Call &&call) {
    pith_error err = no_error();
    const pith_status status = call(to.get(), &err);
    to.finish();
    check(status, err);
}

/* What such a function writes. */
template <class Call> std::string collect(Call &&call) {
    std::string text;
    Writer to(text);
    write_to(to, call);
    return text;
}

} // namespace detail

/* ---- texts ---- */

inline pith_str str(std::string_view text) noexcept { return pith_str{ text.data(), text.size() }; }
inline std::string_view view(pith_str text) noexcept {
    return text.data ? std::string_view(text.data, text.size) : std::string_view();
}

/* Texts for a call: made from a list or a container of what converts to std::string_view, without
 * copying them. */
class Texts {
  public:
    Texts(std::initializer_list<std::string_view> texts) { add(texts); }
    template <class Container, class = decltype(std::begin(std::declval<const Container &>())),
              class = std::enable_if_t<!std::is_convertible_v<const Container &, std::string_view>>>
    Texts(const Container &texts) {
        add(texts);
    }
    const pith_str *data() const noexcept { return items_.data(); }
    std::size_t size() const noexcept { return items_.size(); }

  private:
    template <class Container> void add(const Container &texts) {
        for (const auto &text : texts) items_.push_back(str(std::string_view(text)));
    }
    std::vector<pith_str> items_;
};

namespace detail {
template <class Text>
auto token_ids(const Text &text, int)
    -> decltype(pith_token_ids{ text->ids, text->type_ids, text->count, 0 }) {
    return { text->ids, text->type_ids, text->count, 0 };
}
template <class Text>
auto token_ids(const Text &text, long)
    -> decltype(pith_token_ids{ text.data(), nullptr, text.size(), 0 }) {
    return { text.data(), nullptr, text.size(), 0 };
}
} // namespace detail

/* Texts as tokens: a container of pith::Tokens, or of anything with data() and size() that is
 * std::int32_t, such as std::vector. pith::Tokens bring their type ids. What it is made of must
 * live as long as it:
 *
 *     std::vector<std::vector<std::int32_t>> ids = ...;
 *     pith::Vectors v = model.embed(pith::TokenTexts(ids)); */
class TokenTexts {
  public:
    TokenTexts() = default;
    template <class Container, class = decltype(detail::token_ids(
                                   *std::begin(std::declval<const Container &>()), 0))>
    explicit TokenTexts(const Container &texts) {
        for (const auto &text : texts) add(detail::token_ids(text, 0));
    }
    void add(const pith_token_ids &text) { items_.push_back(text); }
    const pith_token_ids *data() const noexcept { return items_.data(); }
    std::size_t size() const noexcept { return items_.size(); }

  private:
    std::vector<pith_token_ids> items_;
};

/* The length of the longest beginning that is valid UTF-8. */
inline std::size_t valid_prefix(std::string_view text) noexcept {
    return pith_text_valid(str(text));
}

/* ---- vectors ---- */

/* Rows of floats, row-major. */
class Vectors {
  public:
    Vectors() = default;
    Vectors(std::size_t rows, std::size_t dim) : dim_(dim), data_(rows * dim) {}
    std::size_t size() const noexcept { return dim_ ? data_.size() / dim_ : 0; }
    std::size_t dim() const noexcept { return dim_; }
    const float *operator[](std::size_t row) const noexcept { return data_.data() + row * dim_; }
    float *operator[](std::size_t row) noexcept { return data_.data() + row * dim_; }
    const float *data() const noexcept { return data_.data(); }
    float *data() noexcept { return data_.data(); }

  private:
    std::size_t dim_ = 0;
    std::vector<float> data_;
};

/* Vectors as a pith_vector_type. */
inline std::vector<std::uint8_t> quantize(const Vectors &vectors, const pith_quantize_options &o) {
    std::vector<std::uint8_t> rows(vectors.size() * pith_quantize_row_bytes(o.type, vectors.dim()));
    detail::attempt([&](pith_error *err) {
        return pith_quantize_vectors(rows.data(), vectors.data(), vectors.size(), vectors.dim(), &o,
                                     err);
    });
    return rows;
}

/* The smallest and the largest value of each component, two rows. */
inline Vectors quantize_ranges(const Vectors &vectors,
                               const pith_call &call = options<pith_call>()) {
    Vectors ranges(2, vectors.dim());
    detail::attempt([&](pith_error *err) {
        return pith_quantize_ranges(ranges.data(), vectors.data(), vectors.size(), vectors.dim(),
                                    &call, err);
    });
    return ranges;
}

/* ---- the library ---- */

inline std::string version() { return pith_version(); }

/* Where a model of that name is; without a name, the model cache. */
inline std::string locate(const std::string &name = {}) {
    std::string path(4096, '\0');
    detail::attempt([&](pith_error *err) {
        return pith_model_locate(&path[0], path.size(), name.empty() ? nullptr : name.c_str(), err);
    });
    path.resize(path.find('\0'));
    return path;
}

/* The threads of the process: see pith/call.h. */
inline void set_threads(std::int32_t threads) {
    detail::attempt([&](pith_error *err) { return pith_set_threads(threads, err); });
}
inline void pin_threads(bool pin) noexcept { pith_pin_threads(pin); }
inline void set_spin(std::int32_t microseconds) noexcept { pith_set_spin(microseconds); }
inline void stop_threads() {
    detail::attempt([](pith_error *err) { return pith_stop_threads(err); });
}
/* nullptr: the library's own threads again. */
inline void set_executor(const pith_executor *executor) {
    detail::attempt([&](pith_error *err) { return pith_set_executor(executor, err); });
}

inline pith_cpu_info cpu() {
    pith_cpu_info info = options<pith_cpu_info>();
    detail::attempt([&](pith_error *err) { return pith_cpu_report(&info, err); });
    return info;
}
inline pith_build_info build() {
    pith_build_info info = options<pith_build_info>();
    detail::attempt([&](pith_error *err) { return pith_build_report(&info, err); });
    return info;
}
/* A runtime before a model is opened: the library of ONNX Runtime that would be loaded. */
inline pith_runtime_report probe_runtime(const std::string &name,
                                         const pith_runtime_options *wanted = nullptr) {
    pith_runtime_report report = options<pith_runtime_report>();
    detail::attempt(
        [&](pith_error *err) { return pith_runtime_probe(&report, name.c_str(), wanted, err); });
    return report;
}
inline pith_memory_info memory() {
    pith_memory_info info = options<pith_memory_info>();
    detail::attempt([&](pith_error *err) { return pith_memory_report(&info, nullptr, err); });
    return info;
}

/* ---- profiles ---- */

class Profile {
  public:
    Profile() {
        pith_profile *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_profile_create(&handle, nullptr, err); });
        handle_.reset(handle);
    }
    pith_profile *get() const noexcept { return handle_.get(); }
    static std::uint64_t now() noexcept { return pith_profile_now(); }
    void phase(const char *name, std::uint64_t begin_ns) {
        pith_profile_phase(get(), name, begin_ns);
    }
    /* As pith_profile_tell: `told` is called by several threads at once, and must not throw. */
    void tell(void (*told)(void *user, const pith_phase *phase), void *user, bool only) noexcept {
        pith_profile_tell(get(), told, user, only);
    }
    /* In the Chrome trace format. */
    void json(Writer &to, const pith_call &call = options<pith_call>()) const {
        detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
            return pith_profile_write(get(), &call, writer, err);
        });
    }
    std::string json() const {
        std::string text;
        Writer to(text);
        json(to);
        return text;
    }

  private:
    detail::Handle<pith_profile, pith_profile_destroy> handle_;
};

/* ---- tensors ---- */

template <class T> constexpr std::int32_t dtype_of() {
    if constexpr (std::is_same_v<T, float>) return PITH_F32;
    if constexpr (std::is_same_v<T, double>) return PITH_F64;
    if constexpr (std::is_same_v<T, std::int64_t>) return PITH_I64;
    if constexpr (std::is_same_v<T, std::int32_t>) return PITH_I32;
    if constexpr (std::is_same_v<T, std::int16_t>) return PITH_I16;
    if constexpr (std::is_same_v<T, std::int8_t>) return PITH_I8;
    if constexpr (std::is_same_v<T, std::uint64_t>) return PITH_U64;
    if constexpr (std::is_same_v<T, std::uint32_t>) return PITH_U32;
    if constexpr (std::is_same_v<T, std::uint16_t>) return PITH_U16;
    if constexpr (std::is_same_v<T, std::uint8_t>) return PITH_U8;
    if constexpr (std::is_same_v<T, bool>) return PITH_BOOL;
    if constexpr (std::is_same_v<T, pith_str>) return PITH_STRING;
    return PITH_UNDEFINED;
}

/* A tensor over memory of the caller, which is only read. At most PITH_MAX_RANK sizes. */
template <class T> pith_tensor tensor(const T *data, std::initializer_list<std::int64_t> dims) {
    static_assert(dtype_of<T>() != PITH_UNDEFINED, "no element type of ONNX");
    if (dims.size() > PITH_MAX_RANK)
        throw std::invalid_argument("pith::tensor: too many dimensions");
    pith_tensor t{};
    t.dtype = dtype_of<T>();
    for (std::int64_t d : dims) t.dims[t.rank++] = d;
    const std::int64_t count = pith_shape_count(t.dims, t.rank);
    if (count < 0) throw std::invalid_argument("pith::tensor: a size is negative or too large");
    t.data = const_cast<void *>(static_cast<const void *>(data));
    t.bytes = static_cast<std::size_t>(count) * sizeof(T);
    return t;
}

inline std::string element_name(std::int32_t dtype) { return pith_element_name(dtype); }
inline std::int32_t element_dtype(const std::string &name) noexcept {
    return pith_element_dtype(name.c_str());
}
inline std::int32_t element_bits(std::int32_t dtype) noexcept { return pith_element_bits(dtype); }
inline std::string shape_text(const pith_tensor &t) {
    std::array<char, 32 * PITH_MAX_RANK> text;
    return pith_shape_format(text.data(), text.size(), t.dims, t.rank);
}
inline std::vector<std::int64_t> shape_parse(const std::string &text) {
    std::int64_t dims[PITH_MAX_RANK];
    std::int32_t rank = 0;
    detail::attempt(
        [&](pith_error *err) { return pith_shape_parse(dims, &rank, text.c_str(), err); });
    return std::vector<std::int64_t>(dims, dims + rank);
}
inline std::size_t shape_bytes(std::int32_t dtype, const std::vector<std::int64_t> &dims) {
    std::size_t bytes = 0;
    const auto rank = static_cast<std::int32_t>(dims.size());
    detail::attempt(
        [&](pith_error *err) { return pith_shape_bytes(&bytes, dtype, dims.data(), rank, err); });
    return bytes;
}
/* All elements of a tensor, converted to T. */
template <class T> std::vector<T> elements(const pith_tensor &t) {
    const std::int64_t count = pith_shape_count(t.dims, t.rank);
    std::vector<T> all(count > 0 ? static_cast<std::size_t>(count) : 0);
    detail::attempt([&](pith_error *err) {
        return pith_tensor_convert(all.data(), dtype_of<T>(), &t, 0, all.size(), err);
    });
    return all;
}

/* A value of a .pb file of the ONNX test folders. */
class ValueFile {
  public:
    ValueFile(const std::string &path, std::int32_t kind,
              const pith_call &call = options<pith_call>()) {
        pith_value_file *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_value_open(&handle, &tensor_, &name_, path.c_str(), kind, &call, err);
        });
        handle_.reset(handle);
    }
    const pith_tensor &tensor() const noexcept { return tensor_; }
    const char *name() const noexcept { return name_; }
    /* The bytes of such a file. */
    static std::string bytes(const pith_tensor &value, const std::string &name, std::int32_t kind,
                             const pith_call &call = options<pith_call>()) {
        return detail::collect([&](const pith_writer *writer, pith_error *err) {
            return pith_value_write(&value, name.c_str(), kind, &call, writer, err);
        });
    }

  private:
    pith_tensor tensor_{};
    const char *name_ = "";
    detail::Handle<pith_value_file, pith_value_close> handle_;
};

/* ---- tokens ---- */

class Tokens {
  public:
    Tokens() = default;
    Tokens(Tokens &&other) noexcept : tokens_(other.tokens_) { other.tokens_ = empty(); }
    Tokens &operator=(Tokens &&other) noexcept {
        std::swap(tokens_, other.tokens_);
        return *this;
    }
    ~Tokens() { pith_tokens_free(&tokens_); }
    std::size_t size() const noexcept { return tokens_.count; }
    std::int32_t operator[](std::size_t i) const noexcept { return tokens_.ids[i]; }
    const pith_tokens *operator->() const noexcept { return &tokens_; }
    pith_tokens *get() noexcept { return &tokens_; }
    std::vector<std::int32_t> ids() const { return { tokens_.ids, tokens_.ids + tokens_.count }; }

  private:
    static pith_tokens empty() noexcept {
        pith_tokens t = PITH_TOKENS_INIT;
        return t;
    }
    pith_tokens tokens_ = empty();
};

/* A tokenizer, opened by itself or that of a Model, which must then outlive it. */
class Tokenizer {
  public:
    explicit Tokenizer(const std::string &path,
                       const pith_open_options &o = options<pith_open_options>()) {
        pith_tokenizer *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_tokenizer_open(&handle, path.c_str(), &o, err); });
        own_.reset(handle);
        handle_ = handle;
    }
    explicit Tokenizer(const pith_tokenizer *of_model) noexcept : handle_(of_model) {}
    const pith_tokenizer *get() const noexcept { return handle_; }

    Tokens tokenize(std::string_view text,
                    const pith_tokenize_options &o = options<pith_tokenize_options>()) const {
        return run(text, nullptr, o);
    }
    Tokens tokenize(std::string_view text, std::string_view pair,
                    const pith_tokenize_options &o = options<pith_tokenize_options>()) const {
        const pith_str second = str(pair);
        return run(text, &second, o);
    }
    /* The tokens of all texts one after the other; ends[i]: where those of text i end. */
    Tokens tokenize(const Texts &texts, std::vector<std::size_t> &ends,
                    const pith_tokenize_options &o = options<pith_tokenize_options>()) const {
        Tokens tokens;
        ends.resize(texts.size());
        detail::attempt([&](pith_error *err) {
            return pith_tokenize_batch(tokens.get(), ends.data(), get(), texts.data(), nullptr,
                                       texts.size(), &o, err);
        });
        return tokens;
    }
    std::string detokenize(const std::vector<std::int32_t> &ids, bool skip_specials = true,
                           const pith_call &call = options<pith_call>()) const {
        char *text = nullptr;
        std::size_t size = 0;
        detail::attempt([&](pith_error *err) {
            return pith_detokenize(&text, &size, get(), ids.data(), ids.size(), skip_specials,
                                   &call, err);
        });
        struct Guard {
            const pith_tokenizer *tokenizer;
            char *text;
            ~Guard() { pith_text_free(tokenizer, text); }
        } guard{ get(), text };
        return std::string(text, size);
    }
    /* The vocabulary's spelling; nothing if there is no such id. */
    std::optional<std::string_view> token(std::int32_t id) const noexcept {
        const pith_str text = pith_token_text(get(), id);
        return text.data ? std::optional<std::string_view>(view(text)) : std::nullopt;
    }
    /* Tokens at which the model of the files at path cuts texts. */
    std::int32_t limit(const std::string &path) const {
        std::int32_t tokens = 0;
        detail::attempt([&](pith_error *err) {
            return pith_tokenizer_limit(&tokens, get(), path.c_str(), err);
        });
        return tokens;
    }
    /* Whether texts are cut at their beginning where pith_tokenize_options.left is 0. */
    bool cuts_left() const noexcept { return pith_tokenizer_cuts_left(get()) != 0; }

  private:
    Tokens run(std::string_view text, const pith_str *pair, const pith_tokenize_options &o) const {
        Tokens tokens;
        detail::attempt([&](pith_error *err) {
            return pith_tokenize(tokens.get(), get(), str(text), pair, &o, err);
        });
        return tokens;
    }
    detail::Handle<pith_tokenizer, pith_tokenizer_close> own_;
    const pith_tokenizer *handle_ = nullptr;
};

/* Ids to text, one at a time. What push and finish return is valid until the next call. */
class TextStream {
  public:
    explicit TextStream(const Tokenizer &tokenizer, bool skip_specials = true) {
        pith_text_stream *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_text_stream_create(&handle, tokenizer.get(), skip_specials, err);
        });
        handle_.reset(handle);
    }
    std::string_view push(std::int32_t id) {
        pith_str text{};
        detail::attempt(
            [&](pith_error *err) { return pith_text_stream_push(handle_.get(), &text, id, err); });
        return view(text);
    }
    std::string_view finish() {
        pith_str text{};
        detail::attempt(
            [&](pith_error *err) { return pith_text_stream_finish(handle_.get(), &text, err); });
        return view(text);
    }

  private:
    detail::Handle<pith_text_stream, pith_text_stream_destroy> handle_;
};

/* ---- pictures ---- */

/* The colour profile and the resolution of a picture: options.details = details.fill() before it is
 * read, and options.details = &details.get() before it is written. */
class ImageDetails {
  public:
    ImageDetails() = default;
    ImageDetails(const ImageDetails &) = delete;
    ImageDetails &operator=(const ImageDetails &) = delete;
    ~ImageDetails() { pith_image_details_free(&details_); }
    pith_image_details *fill() noexcept {
        pith_image_details_free(&details_);
        return &details_;
    }
    const pith_image_details &get() const noexcept { return details_; }

  private:
    pith_image_details details_ = PITH_IMAGE_DETAILS_INIT;
};

class Image {
  public:
    Image() = default;
    explicit Image(const std::string &path,
                   const pith_image_options &o = options<pith_image_options>()) {
        detail::attempt(
            [&](pith_error *err) { return pith_image_read(&image_, path.c_str(), &o, err); });
    }
    static Image decode(const void *data, std::size_t size,
                        const pith_image_options &o = options<pith_image_options>()) {
        Image made;
        detail::attempt(
            [&](pith_error *err) { return pith_image_decode(&made.image_, data, size, &o, err); });
        return made;
    }
    Image(Image &&other) noexcept : image_(std::exchange(other.image_, pith_image{})) {}
    Image &operator=(Image &&other) noexcept {
        std::swap(image_, other.image_);
        return *this;
    }
    ~Image() { pith_image_free(&image_); }
    const pith_image &get() const noexcept { return image_; }
    /* The bytes of a file of the format that the options name. */
    std::string encode(
        const pith_image_encode_options &o = options<pith_image_encode_options>()) const {
        return detail::collect([&](const pith_writer *writer, pith_error *err) {
            return pith_image_encode(&image_, &o, writer, err);
        });
    }
    void encode(Writer &to,
                const pith_image_encode_options &o = options<pith_image_encode_options>()) const {
        detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
            return pith_image_encode(&image_, &o, writer, err);
        });
    }
    Image resized(const pith_image_resize_options &o) const {
        Image made;
        detail::attempt(
            [&](pith_error *err) { return pith_image_resize(&made.image_, &image_, &o, err); });
        return made;
    }
    Image center_crop(std::int32_t width, std::int32_t height,
                      const pith_call &call = options<pith_call>()) const {
        Image made;
        detail::attempt([&](pith_error *err) {
            return pith_image_center_crop(&made.image_, &image_, width, height, &call, err);
        });
        return made;
    }
    /* Uses this module of decoders from now on; nullptr: searches for one again. */
    static void use_module(const pith_image_module *module) {
        detail::attempt([&](pith_error *err) { return pith_image_register(module, err); });
    }

  private:
    pith_image image_{};
};

class ImageProcessor {
  public:
    explicit ImageProcessor(const std::string &path) {
        pith_image_processor *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_image_processor_open(&handle, path.c_str(), nullptr, err);
        });
        handle_.reset(handle);
    }
    const pith_image_processor *get() const noexcept { return handle_.get(); }
    /* channels, height, width */
    std::array<std::int64_t, 3> shape(const Image &image) const {
        std::array<std::int64_t, 3> dims{};
        detail::attempt([&](pith_error *err) {
            return pith_image_processor_shape(dims.data(), get(), image.get().width,
                                              image.get().height, err);
        });
        return dims;
    }
    std::vector<float> process(const Image &image,
                               const pith_call &call = options<pith_call>()) const {
        const auto dims = shape(image);
        std::vector<float> pixels(static_cast<std::size_t>(dims[0] * dims[1] * dims[2]));
        detail::attempt([&](pith_error *err) {
            return pith_image_process(pixels.data(), get(), &image.get(), &call, err);
        });
        return pixels;
    }

  private:
    detail::Handle<pith_image_processor, pith_image_processor_close> handle_;
};

/* ---- models ---- */

/* What pith_encode made; free it before its Model. */
class Encoded {
  public:
    explicit Encoded(pith_encoded *handle) noexcept : handle_(handle) {}
    const pith_encoded *operator->() const noexcept { return handle_.get(); }
    const pith_encoded &operator*() const noexcept { return *handle_; }

  private:
    detail::Handle<pith_encoded, pith_encoded_free> handle_;
};

/* A model that has been found and identified, and not planned: see pith/source.h. Models opened
 * from it keep what they need of it. */
class Source {
  public:
    Source() = default;
    explicit Source(const std::string &path,
                    const pith_source_options &o = options<pith_source_options>()) {
        pith_source *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_source_open(&handle, path.c_str(), &o, err); });
        handle_.reset(handle);
    }
    /* A file of any contents, for verify and convert. */
    static Source file(const std::string &path,
                       pith_source_options o = options<pith_source_options>()) {
        o.flags |= PITH_SOURCE_FILE;
        return Source(path, o);
    }
    /* data must stay as it is until the source and all models opened from it are destroyed. */
    static Source from_memory(const void *data, std::size_t size,
                              const pith_source_options &o = options<pith_source_options>()) {
        Source made;
        pith_source *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_source_open_memory(&handle, data, size, &o, err); });
        made.handle_.reset(handle);
        return made;
    }
    pith_source *get() const noexcept { return handle_.get(); }
    /* What it is; the strings live as long as the source. */
    pith_source_info report() const {
        pith_source_info info = PITH_SOURCE_INFO_INIT;
        detail::attempt([&](pith_error *err) { return pith_source_report(&info, get(), err); });
        return info;
    }
    /* Compares a compiled file with the hashes in it. */
    void verify(const pith_call &call = options<pith_call>()) const {
        detail::attempt([&](pith_error *err) { return pith_source_verify(get(), &call, err); });
    }
    /* A model as the bytes of an ONNX file: see pith_source_export. o.data_name must be NULL. */
    std::string export_onnx(const pith_export_options &o = options<pith_export_options>(),
                            pith_export_report *report = nullptr) const {
        return written(pith_source_export, o, report);
    }
    /* data: takes the second file, whose name is o.data_name. */
    void export_onnx(Writer &to, const pith_export_options &o = options<pith_export_options>(),
                     pith_export_report *report = nullptr, Writer *data = nullptr) const {
        write(pith_source_export, to, o, report, data);
    }
    /* The same with weights of few bits: see pith_source_quantize. */
    std::string quantize_onnx(
        const pith_quantize_model_options &o = options<pith_quantize_model_options>(),
        pith_quantize_model_report *report = nullptr) const {
        return written(pith_source_quantize, o, report);
    }
    void quantize_onnx(
        Writer &to, const pith_quantize_model_options &o = options<pith_quantize_model_options>(),
        pith_quantize_model_report *report = nullptr, Writer *data = nullptr) const {
        write(pith_source_quantize, to, o, report, data);
    }
    /* The same with fewer and faster operators: see pith_source_optimize. */
    std::string optimize_onnx(const pith_optimize_options &o = options<pith_optimize_options>(),
                              pith_optimize_report *report = nullptr) const {
        return written(pith_source_optimize, o, report);
    }
    void optimize_onnx(Writer &to,
                       const pith_optimize_options &o = options<pith_optimize_options>(),
                       pith_optimize_report *report = nullptr, Writer *data = nullptr) const {
        write(pith_source_optimize, to, o, report, data);
    }
    /* An ONNX file as text, or text as an ONNX file: see pith_source_convert. */
    void convert(Writer &to, const pith_convert_options &o = options<pith_convert_options>(),
                 pith_convert_report *report = nullptr) const {
        detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
            return pith_source_convert(get(), &o, writer, report, err);
        });
    }
    std::string convert(const pith_convert_options &o = options<pith_convert_options>(),
                        pith_convert_report *report = nullptr) const {
        std::string bytes;
        Writer to(bytes);
        convert(to, o, report);
        return bytes;
    }
    /* The number of optimisation levels whose results differ from the model as written. */
    std::size_t check_fusions(const pith_check_options &o = options<pith_check_options>()) const {
        std::size_t findings = 0;
        detail::attempt(
            [&](pith_error *err) { return pith_source_check_fusions(&findings, get(), &o, err); });
        return findings;
    }

  private:
    template <typename Function, typename Options, typename Report>
    void write(Function *function, Writer &to, const Options &o, Report *report,
               Writer *data) const {
        pith_error err = detail::no_error();
        const pith_status status =
            function(get(), &o, to.get(), data ? data->get() : nullptr, report, &err);
        to.finish();
        if (data) data->finish();
        detail::check(status, err);
    }
    template <typename Function, typename Options, typename Report>
    std::string written(Function *function, const Options &o, Report *report) const {
        std::string bytes;
        Writer to(bytes);
        write(function, to, o, report, nullptr);
        return bytes;
    }
    detail::Handle<pith_source, pith_source_close> handle_;
};

class Model {
  public:
    Model() = default;
    explicit Model(const std::string &path,
                   const pith_open_options &o = options<pith_open_options>()) {
        pith_model *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_model_open(&handle, path.c_str(), &o, err); });
        handle_.reset(handle);
    }
    explicit Model(const Source &source,
                   const pith_open_options &o = options<pith_open_options>()) {
        pith_model *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_model_open_source(&handle, source.get(), &o, err);
        });
        handle_.reset(handle);
    }
    /* data must stay as it is until the model is destroyed. */
    static Model from_memory(const void *data, std::size_t size,
                             const pith_open_options &o = options<pith_open_options>()) {
        Model made;
        pith_model *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_model_open_memory(&handle, data, size, &o, err); });
        made.handle_.reset(handle);
        return made;
    }
    pith_model *get() const noexcept { return handle_.get(); }

    /* ---- vectors of texts and pictures ---- */

    std::size_t dim(const pith_embed_options &o = options<pith_embed_options>()) const noexcept {
        return pith_embed_dim(get(), &o);
    }
    std::size_t max_length(
        const pith_embed_options &o = options<pith_embed_options>()) const noexcept {
        return pith_embed_max_length(get(), &o);
    }
    Vectors embed(const Texts &texts,
                  const pith_embed_options &o = options<pith_embed_options>()) const {
        Vectors vectors(texts.size(), dim(o));
        embed(vectors.data(), texts, o);
        return vectors;
    }
    /* To memory of the caller: texts.size() rows of dim(o). */
    void embed(float *vectors, const Texts &texts, const pith_embed_options &o) const {
        detail::attempt([&](pith_error *err) {
            return pith_embed(vectors, get(), texts.data(), texts.size(), &o, err);
        });
    }
    /* Texts that are tokens already, here and below. */
    Vectors embed(const TokenTexts &texts,
                  const pith_embed_options &o = options<pith_embed_options>()) const {
        Vectors vectors(texts.size(), dim(o));
        embed(vectors.data(), texts, o);
        return vectors;
    }
    void embed(float *vectors, const TokenTexts &texts, const pith_embed_options &o) const {
        detail::attempt([&](pith_error *err) {
            return pith_embed_tokens(vectors, get(), texts.data(), texts.size(), &o, err);
        });
    }
    pith_memory_need predict(std::size_t count, std::size_t tokens,
                             const pith_embed_options &o = options<pith_embed_options>()) const {
        pith_memory_need need{};
        detail::attempt([&](pith_error *err) {
            return pith_embed_predict(&need, get(), count, tokens, &o, err);
        });
        return need;
    }
    /* PITH_ENCODE_*: what encode can make. */
    std::uint32_t can_encode() const noexcept { return pith_encode_can(get()); }
    Encoded encode(const Texts &texts, const pith_encode_options &o) const {
        pith_encoded *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_encode(&handle, get(), texts.data(), texts.size(), &o, err);
        });
        return Encoded(handle);
    }
    /* The same in memory of the caller. */
    pith_encoded encode_into(const pith_encode_memory &memory, const Texts &texts,
                             const pith_encode_options &o) const {
        pith_encoded encoded{};
        detail::attempt([&](pith_error *err) {
            return pith_encode_into(&encoded, &memory, get(), texts.data(), texts.size(), &o, err);
        });
        return encoded;
    }
    Encoded encode(const TokenTexts &texts, const pith_encode_options &o) const {
        pith_encoded *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_encode_tokens(&handle, get(), texts.data(), texts.size(), &o, err);
        });
        return Encoded(handle);
    }
    pith_encoded encode_into(const pith_encode_memory &memory, const TokenTexts &texts,
                             const pith_encode_options &o) const {
        pith_encoded encoded{};
        detail::attempt([&](pith_error *err) {
            return pith_encode_tokens_into(&encoded, &memory, get(), texts.data(), texts.size(), &o,
                                           err);
        });
        return encoded;
    }
    Vectors embed_images(
        const std::vector<Image> &images,
        const pith_embed_images_options &o = options<pith_embed_images_options>()) const {
        std::size_t dim = 0;
        std::vector<pith_image> pictures;
        for (const Image &image : images) pictures.push_back(image.get());
        detail::attempt(
            [&](pith_error *err) { return pith_embed_images_dim(&dim, get(), &o, err); });
        Vectors vectors(images.size(), dim);
        detail::attempt([&](pith_error *err) {
            return pith_embed_images(vectors.data(), get(), pictures.data(), pictures.size(), &o,
                                     err);
        });
        return vectors;
    }
    /* The faces of each picture, by falling score. */
    std::vector<std::vector<pith_face>> detect(
        const std::vector<Image> &images,
        const pith_detect_options &o = options<pith_detect_options>()) const {
        std::vector<pith_image> pictures;
        for (const Image &image : images) pictures.push_back(image.get());
        std::vector<pith_faces> found(images.size());
        detail::attempt([&](pith_error *err) {
            return pith_detect(found.data(), get(), pictures.data(), pictures.size(), &o, err);
        });
        std::vector<std::vector<pith_face>> faces;
        try {
            for (const pith_faces &f : found) faces.emplace_back(f.faces, f.faces + f.count);
        } catch (...) {
            for (pith_faces &f : found) pith_faces_free(&f);
            throw;
        }
        for (pith_faces &f : found) pith_faces_free(&f);
        return faces;
    }
    /* All chunks of a text. */
    std::vector<pith_chunk> chunks(
        std::string_view text, const pith_chunk_options &o = options<pith_chunk_options>()) const {
        std::vector<pith_chunk> all;
        pith_chunk chunk = PITH_CHUNK_INIT;
        do {
            detail::attempt([&](pith_error *err) {
                return pith_chunk_text(&chunk, get(), str(text), &o, err);
            });
            all.push_back(chunk);
        } while (!chunk.last);
        return all;
    }
    std::vector<float> chunk_mean(
        const std::vector<double> &sums, std::uint64_t tokens,
        const pith_embed_options &o = options<pith_embed_options>()) const {
        std::vector<float> mean(dim(o));
        detail::attempt([&](pith_error *err) {
            return pith_chunk_mean(mean.data(), get(), sums.data(), tokens, &o, err);
        });
        return mean;
    }

    /* ---- scores ---- */

    std::vector<std::string> labels() const {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < pith_label_count(get()); i++)
            names.emplace_back(pith_label_name(get(), i));
        return names;
    }
    /* A row per text, a column per label. */
    Vectors classify(const Texts &texts,
                     const pith_score_options &o = options<pith_score_options>()) const {
        return scores(texts, nullptr, o);
    }
    Vectors classify(const Texts &texts, const Texts &pairs,
                     const pith_score_options &o = options<pith_score_options>()) const {
        if (texts.size() != pairs.size())
            throw std::invalid_argument("pith: a text lacks its pair");
        return scores(texts, pairs.data(), o);
    }
    std::vector<float> rerank(std::string_view query, const Texts &documents,
                              const pith_score_options &o = options<pith_score_options>()) const {
        std::vector<float> all(documents.size());
        detail::attempt([&](pith_error *err) {
            return pith_rerank(all.data(), get(), str(query), documents.data(), documents.size(),
                               &o, err);
        });
        return all;
    }
    Vectors classify(const TokenTexts &texts,
                     const pith_score_options &o = options<pith_score_options>()) const {
        Vectors all(texts.size(), pith_label_count(get()));
        detail::attempt([&](pith_error *err) {
            return pith_classify_tokens(all.data(), get(), texts.data(), texts.size(), &o, err);
        });
        return all;
    }
    /* Each row is a query and a document. */
    std::vector<float> rerank(const TokenTexts &pairs,
                              const pith_score_options &o = options<pith_score_options>()) const {
        std::vector<float> all(pairs.size());
        detail::attempt([&](pith_error *err) {
            return pith_rerank_tokens(all.data(), get(), pairs.data(), pairs.size(), &o, err);
        });
        return all;
    }

    /* ---- looking inside, and upkeep ---- */

    /* Nothing if the model has no tokenizer. */
    std::optional<Tokenizer> tokenizer() const {
        const pith_tokenizer *own = pith_model_tokenizer(get());
        return own ? std::optional<Tokenizer>(Tokenizer(own)) : std::nullopt;
    }
    /* The ports belong to the model. */
    std::vector<const pith_port *> inputs() const {
        std::vector<const pith_port *> ports;
        for (std::size_t i = 0; i < pith_model_input_count(get()); i++)
            ports.push_back(pith_model_input(get(), i));
        return ports;
    }
    std::vector<const pith_port *> outputs() const {
        std::vector<const pith_port *> ports;
        for (std::size_t i = 0; i < pith_model_output_count(get()); i++)
            ports.push_back(pith_model_output(get(), i));
        return ports;
    }
    std::string describe(pith_description form,
                         const pith_call &call = options<pith_call>()) const {
        return detail::collect([&](const pith_writer *writer, pith_error *err) {
            return pith_model_describe(get(), form, &call, writer, err);
        });
    }
    void describe(pith_description form, Writer &to,
                  const pith_call &call = options<pith_call>()) const {
        detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
            return pith_model_describe(get(), form, &call, writer, err);
        });
    }
    std::size_t bytes(std::size_t *peak = nullptr) const noexcept {
        return pith_model_bytes(get(), peak);
    }
    void trim() const noexcept { pith_model_trim(get()); }
    pith_statistics statistics() const {
        pith_statistics numbers = options<pith_statistics>();
        detail::attempt(
            [&](pith_error *err) { return pith_model_statistics(&numbers, get(), err); });
        return numbers;
    }
    /* Which engine runs the model; its strings are valid as long as the model. */
    pith_runtime_report runtime() const {
        pith_runtime_report report = options<pith_runtime_report>();
        detail::attempt([&](pith_error *err) { return pith_model_runtime(&report, get(), err); });
        return report;
    }
    void reset_statistics() const noexcept { pith_model_reset_statistics(get()); }

    /* ---- files ---- */

    /* The compiled form of the model: the bytes of a .pith file. */
    void save(Writer &to, const pith_call &call = options<pith_call>()) const {
        detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
            return pith_model_save(get(), &call, writer, err);
        });
    }
    std::string save() const {
        std::string bytes;
        Writer to(bytes);
        save(to);
        return bytes;
    }
    /* The same of several routes of one Router model; the first is the file's default. */
    static void save_routes(const std::vector<const Model *> &models, Writer &to,
                            const pith_call &call = options<pith_call>()) {
        std::vector<const pith_model *> all;
        for (const Model *model : models) all.push_back(model->get());
        detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
            return pith_model_save_routes(all.data(), all.size(), &call, writer, err);
        });
    }
    static std::string save_routes(const std::vector<const Model *> &models) {
        std::string bytes;
        Writer to(bytes);
        save_routes(models, to);
        return bytes;
    }
    /* The route that the model was opened for; empty without a Router. */
    std::string route() const { return pith_model_route(get()); }
    /* The names that options.route may have. */
    std::vector<std::string> routes() const {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < pith_model_route_count(get()); i++)
            names.emplace_back(pith_model_route_name(get(), i));
        return names;
    }
    void calibrate(const pith_calibrate_options &o = options<pith_calibrate_options>()) {
        detail::attempt([&](pith_error *err) { return pith_model_calibrate(get(), &o, err); });
    }
    /* Another reference to the same model. */
    Model share() const {
        Model other;
        other.handle_.reset(pith_model_share(get()));
        return other;
    }
    /* What its file says of itself. */
    pith_model_info info() const {
        pith_model_info info = options<pith_model_info>();
        detail::attempt([&](pith_error *err) { return pith_model_report(&info, get(), err); });
        return info;
    }

  private:
    Vectors scores(const Texts &texts, const pith_str *pairs, const pith_score_options &o) const {
        Vectors all(texts.size(), pith_label_count(get()));
        detail::attempt([&](pith_error *err) {
            return pith_classify(all.data(), get(), texts.data(), pairs, texts.size(), &o, err);
        });
        return all;
    }
    detail::Handle<pith_model, pith_model_close> handle_;
};

/* Results of Model::run, which it frees. Movable. */
class Tensors {
  public:
    explicit Tensors(std::size_t count) : tensors_(count, pith_tensor{}) {}
    Tensors(Tensors &&other) noexcept : tensors_(std::move(other.tensors_)) {
        other.tensors_.clear();
    }
    Tensors &operator=(Tensors &&other) noexcept {
        tensors_.swap(other.tensors_);
        return *this;
    }
    Tensors(const Tensors &) = delete;
    Tensors &operator=(const Tensors &) = delete;
    ~Tensors() {
        for (pith_tensor &tensor : tensors_) pith_tensor_free(&tensor);
    }
    pith_tensor *data() noexcept { return tensors_.data(); }
    std::size_t size() const noexcept { return tensors_.size(); }
    const pith_tensor &operator[](std::size_t index) const { return tensors_[index]; }

  private:
    std::vector<pith_tensor> tensors_;
};

/* Runs without a session, from any number of threads. The results may outlive the model. */
inline Tensors run(const Model &model,
                   const std::vector<std::pair<std::string, pith_tensor>> &inputs,
                   const pith_run_options &o = options<pith_run_options>()) {
    std::vector<const char *> names;
    std::vector<pith_tensor> tensors;
    for (const auto &input : inputs) {
        names.push_back(input.first.c_str());
        tensors.push_back(input.second);
    }
    Tensors outputs(o.output_names ? o.output_count : pith_model_output_count(model.get()));
    detail::attempt([&](pith_error *err) {
        return pith_model_run(outputs.data(), model.get(), names.data(), tensors.data(),
                              tensors.size(), &o, err);
    });
    return outputs;
}

/* The numbers as JSON, or as a table. */
inline std::string statistics_text(const pith_statistics &numbers, pith_statistics_form form) {
    return detail::collect([&](const pith_writer *writer, pith_error *err) {
        return pith_statistics_write(&numbers, form, writer, err);
    });
}

/* Runs of any graph. */
class Session {
  public:
    explicit Session(const Model &model)
        : count_(pith_model_output_count(model.get())), outputs_(count_),
          handle_(nullptr, Ending{ nullptr }) {
        pith_session *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_session_create(&handle, model.get(), err); });
        handle_.reset(handle);
    }
    pith_session *get() const noexcept { return handle_.get(); }
    /* The outputs in the model's order, or those of o.output_names in theirs. Their data is valid
     * until the next run. */
    const std::vector<pith_tensor> &run(
        const std::vector<std::pair<std::string, pith_tensor>> &inputs,
        const pith_run_options &o = options<pith_run_options>()) {
        outputs_.resize(o.output_names ? o.output_count : count_);
        std::vector<const char *> names;
        std::vector<pith_tensor> tensors;
        for (const auto &input : inputs) {
            names.push_back(input.first.c_str());
            tensors.push_back(input.second);
        }
        detail::attempt([&](pith_error *err) {
            return pith_session_run(get(), outputs_.data(), names.data(), tensors.data(),
                                    tensors.size(), &o, err);
        });
        return outputs_;
    }
    const std::vector<pith_tensor> &run(const pith_run_options &o = options<pith_run_options>()) {
        return run(std::vector<std::pair<std::string, pith_tensor>>(), o);
    }
    /* Memory of the caller for inputs and outputs of the runs that follow. */
    void bind_input(const std::string &name, const pith_tensor &tensor) {
        detail::attempt([&](pith_error *err) {
            return pith_session_bind_input(get(), name.c_str(), &tensor, err);
        });
    }
    void bind_output(const std::string &name, const pith_tensor &tensor) {
        detail::attempt([&](pith_error *err) {
            return pith_session_bind_output(get(), name.c_str(), &tensor, err);
        });
    }
    void unbind() noexcept { pith_session_unbind(get()); }

  private:
    friend class SessionPool;
    Session(pith_session *handle, pith_session_pool *pool, std::size_t outputs)
        : count_(outputs), outputs_(outputs), handle_(handle, Ending{ pool }) {}

    struct Ending {
        pith_session_pool *pool; /* that the session is returned to */
        void operator()(pith_session *session) const noexcept {
            if (pool)
                pith_session_pool_return(pool, session);
            else
                pith_session_destroy(session);
        }
    };
    std::size_t count_; /* of the model's outputs */
    std::vector<pith_tensor> outputs_;
    std::unique_ptr<pith_session, Ending> handle_;
};

/* Sessions that threads borrow. One that is borrowed returns when its object ends, which must be
 * before the pool does. */
class SessionPool {
  public:
    explicit SessionPool(const Model &model,
                         const pith_session_pool_options &o = options<pith_session_pool_options>())
        : outputs_(pith_model_output_count(model.get())) {
        pith_session_pool *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_session_pool_create(&handle, model.get(), &o, err);
        });
        handle_.reset(handle);
    }
    pith_session_pool *get() const noexcept { return handle_.get(); }
    /* Waits so many milliseconds for one: 0 does not wait, -1 waits for ever. */
    Session borrow(std::int64_t timeout_ms = -1, const pith_call &call = options<pith_call>()) {
        pith_session *session = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_session_pool_borrow(&session, get(), timeout_ms, &call, err);
        });
        return Session(session, get(), outputs_);
    }
    void trim() noexcept { pith_session_pool_trim(get()); }

  private:
    std::size_t outputs_;
    detail::Handle<pith_session_pool, pith_session_pool_destroy> handle_;
};

/* ---- texts of many callers ---- */

/* Runs texts of any number of callers together (pith/queue.h). Any number of threads may use it. It
 * may outlive its model. What waits when it ends is cancelled. */
class Queue {
  public:
    /* Is called once for each request, on a thread of the queue. It must not throw. It may end the
     * queue, which then returns at once, and cannot drain it. The response is valid during the
     * call. */
    using Done = std::function<void(const pith_response &response)>;

    explicit Queue(const Model &model,
                   const pith_queue_options &o = options<pith_queue_options>()) {
        pith_queue *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_queue_create(&handle, model.get(), &o, err); });
        handle_.reset(handle);
    }
    pith_queue *get() const noexcept { return handle_.get(); }
    /* Returns the request's ticket. r has all except the texts, done and user: task, options,
     * priority, deadline, key. Throws an Error of PITH_ERR_BUSY if the queue is full. */
    std::uint64_t submit(const Texts &texts, Done done, pith_request r = options<pith_request>()) {
        r.texts = texts.data();
        r.tokens = nullptr;
        r.count = texts.size();
        return submit_one(r, std::move(done));
    }
    std::uint64_t submit(const TokenTexts &texts, Done done,
                         pith_request r = options<pith_request>()) {
        r.texts = nullptr;
        r.tokens = texts.data();
        r.count = texts.size();
        return submit_one(r, std::move(done));
    }
    /* Returns false if no such request waits or runs. */
    bool cancel(std::uint64_t ticket) noexcept {
        return pith_queue_cancel(get(), ticket, nullptr) == PITH_OK;
    }
    /* Takes no more requests, and waits for those that there are. */
    void drain(const pith_call &call = options<pith_call>()) {
        detail::attempt([&](pith_error *err) { return pith_queue_drain(get(), &call, err); });
    }
    pith_queue_statistics statistics() const {
        auto n = options<pith_queue_statistics>();
        detail::attempt([&](pith_error *err) { return pith_queue_report(&n, get(), err); });
        return n;
    }

  private:
    std::uint64_t submit_one(pith_request &r, Done done) {
        auto kept = std::make_unique<Done>(std::move(done));
        std::uint64_t ticket = 0;
        r.user = kept.get();
        r.done = [](void *user, const pith_response *response) noexcept {
            const std::unique_ptr<Done> mine(static_cast<Done *>(user));
            (*mine)(*response);
        };
        detail::attempt(
            [&](pith_error *err) { return pith_queue_submit(&ticket, get(), &r, err); });
        static_cast<void>(kept.release());
        return ticket;
    }
    detail::Handle<pith_queue, pith_queue_destroy> handle_;
};

/* ---- search ---- */

/* An index over rows of the caller, which must outlive it; one that owns its rows and can change; or
 * a file. */
class SearchIndex {
  public:
    /* The next rows, and their ids, which may be nullptr. count 0: there are no more. */
    struct Page {
        const void *rows = nullptr;
        const std::int64_t *ids = nullptr;
        std::size_t count = 0;
    };

    SearchIndex(const void *rows, std::size_t count, std::size_t dim,
                const pith_search_index_options &o = options<pith_search_index_options>()) {
        pith_search_index *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_search_index_create(&handle, rows, count, dim, &o, err);
        });
        handle_.reset(handle);
    }
    explicit SearchIndex(const Vectors &rows,
                         const pith_search_index_options &o = options<pith_search_index_options>())
        : SearchIndex(rows.data(), rows.size(), rows.dim(), o) {}
    /* Copies the rows of all pages; what next returns must stay valid until it is called again. What
     * it throws is thrown again. */
    static SearchIndex build(
        const std::function<Page()> &next, std::size_t dim,
        const pith_search_index_options &o = options<pith_search_index_options>()) {
        Pages pages{ next, nullptr };
        const pith_row_source source = { next_page, &pages };
        pith_search_index *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            const pith_status status = pith_search_index_build(&handle, &source, dim, &o, err);
            if (pages.thrown) std::rethrow_exception(pages.thrown);
            return status;
        });
        return SearchIndex(handle);
    }
    /* Maps a file, which must stay as it is. dim 0: whatever the file has. */
    static SearchIndex open(
        const std::string &path, std::size_t dim = 0,
        const pith_search_index_options &o = options<pith_search_index_options>()) {
        pith_search_index *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_search_index_open(&handle, path.c_str(), dim, &o, err);
        });
        return SearchIndex(handle);
    }
    /* data, aligned to 8 bytes, must stay as it is until the index is destroyed or changed. */
    static SearchIndex from_memory(
        const void *data, std::size_t size, std::size_t dim = 0,
        const pith_search_index_options &o = options<pith_search_index_options>()) {
        pith_search_index *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_search_index_open_memory(&handle, data, size, dim, &o, err);
        });
        return SearchIndex(handle);
    }
    static void verify(const std::string &path, const pith_call &call = options<pith_call>()) {
        detail::attempt(
            [&](pith_error *err) { return pith_search_index_verify(path.c_str(), &call, err); });
    }
    /* ids nullptr: the rows are numbered on. */
    void add(const void *rows, const std::int64_t *ids, std::size_t count,
             const pith_call &call = options<pith_call>()) {
        detail::attempt([&](pith_error *err) {
            return pith_search_index_add(handle_.get(), rows, ids, count, &call, err);
        });
    }
    /* Returns how many of the ids were there. */
    std::size_t remove(const std::int64_t *ids, std::size_t count,
                       const pith_call &call = options<pith_call>()) {
        std::size_t removed = 0;
        detail::attempt([&](pith_error *err) {
            return pith_search_index_remove(handle_.get(), &removed, ids, count, &call, err);
        });
        return removed;
    }
    void save(Writer &to, const pith_call &call = options<pith_call>()) const {
        detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
            return pith_search_index_save(get(), &call, writer, err);
        });
    }
    std::string save() const {
        std::string bytes;
        Writer to(bytes);
        save(to);
        return bytes;
    }
    std::size_t dim() const noexcept { return pith_search_index_dim(get()); }
    pith_metric metric() const noexcept {
        return static_cast<pith_metric>(pith_search_index_metric(get()));
    }
    const pith_search_index *get() const noexcept { return handle_.get(); }
    std::size_t size() const noexcept { return pith_search_index_count(get()); }
    std::size_t bytes() const noexcept { return pith_search_index_bytes(get()); }
    /* k hits for each query, the best first. */
    std::vector<std::vector<pith_hit>> search(
        const float *queries, std::size_t count, std::size_t k,
        const pith_search_options &o = options<pith_search_options>()) const {
        std::vector<pith_hit> hits(count * k);
        std::vector<std::vector<pith_hit>> all;
        detail::attempt([&](pith_error *err) {
            return pith_search(hits.data(), get(), queries, count, k, &o, err);
        });
        for (std::size_t i = 0; i < count; i++) {
            const pith_hit *first = hits.data() + i * k;
            all.emplace_back(first, first + k);
        }
        return all;
    }
    std::vector<std::vector<pith_hit>> search(
        const Vectors &queries, std::size_t k,
        const pith_search_options &o = options<pith_search_options>()) const {
        if (queries.size() && queries.dim() != dim())
            throw std::invalid_argument("pith: queries of another dimension");
        return search(queries.data(), queries.size(), k, o);
    }

  private:
    explicit SearchIndex(pith_search_index *handle) noexcept : handle_(handle) {}

    struct Pages {
        const std::function<Page()> &next;
        std::exception_ptr thrown;
    };
    static pith_status next_page(void *user, const void **rows, const std::int64_t **ids,
                                 std::size_t *count, pith_error *) noexcept {
        auto *pages = static_cast<Pages *>(user);
        try {
            const Page page = pages->next();
            *rows = page.rows;
            *ids = page.ids;
            *count = page.count;
            return PITH_OK;
        } catch (...) {
            pages->thrown = std::current_exception();
            return PITH_ERR_CANCELLED;
        }
    }

    detail::Handle<pith_search_index, pith_search_index_destroy> handle_;
};

/* ---- pieces in use ---- */

struct BuildPiece {
    std::string list, name, dtypes;
    bool upgraded;
};
namespace detail {
inline void take_piece(void *user, const pith_build_piece *p) {
    static_cast<std::vector<BuildPiece> *>(user)->push_back(
        { p->list, p->name, p->dtypes, p->upgraded != 0 });
}
} // namespace detail

/* What this build of the library holds. */
inline std::vector<BuildPiece> build_pieces() {
    std::vector<BuildPiece> pieces;
    detail::attempt(
        [&](pith_error *err) { return pith_pieces_list(detail::take_piece, &pieces, err); });
    return pieces;
}

/* Notes which pieces of the library the process uses, as long as it lives or until it is read. */
class PieceRecord {
  public:
    using Piece = BuildPiece;
    PieceRecord() {
        detail::attempt([](pith_error *err) { return pith_pieces_record(err); });
    }
    PieceRecord(const PieceRecord &) = delete;
    PieceRecord &operator=(const PieceRecord &) = delete;
    ~PieceRecord() {
        if (!read_) pith_pieces_read([](void *, const pith_build_piece *) {}, nullptr, nullptr);
    }
    /* Once. */
    std::vector<Piece> read() {
        std::vector<Piece> pieces;
        detail::attempt(
            [&](pith_error *err) { return pith_pieces_read(detail::take_piece, &pieces, err); });
        read_ = true;
        return pieces;
    }

  private:
    bool read_ = false;
};

/* ---- BM25 ---- */

/* Sparse rows of a Bm25, which must outlive them. */
class Bm25Rows {
  public:
    explicit Bm25Rows(const pith_bm25 *of) noexcept : of_(of) {}
    Bm25Rows(Bm25Rows &&other) noexcept
        : rows_(std::exchange(other.rows_, pith_bm25_rows{})), of_(other.of_) {}
    Bm25Rows &operator=(Bm25Rows &&other) noexcept {
        std::swap(rows_, other.rows_);
        std::swap(of_, other.of_);
        return *this;
    }
    ~Bm25Rows() {
        if (rows_.memory) pith_bm25_rows_free(&rows_, of_);
    }
    const pith_sparse_rows *operator->() const noexcept { return &rows_.sparse; }
    pith_bm25_rows *get() noexcept { return &rows_; }

  private:
    pith_bm25_rows rows_{};
    const pith_bm25 *of_;
};

class Bm25 {
  public:
    /* dir "": no stop words but those of the options. */
    explicit Bm25(const std::string &dir = "",
                  const pith_bm25_options &o = options<pith_bm25_options>()) {
        pith_bm25 *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_bm25_open(&handle, dir.empty() ? nullptr : dir.c_str(), &o, err);
        });
        handle_.reset(handle);
    }
    static std::string languages() { return pith_bm25_languages(); }
    Bm25Rows encode(const Texts &texts, pith_role role = PITH_ROLE_DOCUMENT,
                    const pith_call &call = options<pith_call>()) const {
        Bm25Rows rows(handle_.get());
        detail::attempt([&](pith_error *err) {
            return pith_bm25_encode(rows.get(), handle_.get(), texts.data(), texts.size(), role,
                                    &call, err);
        });
        return rows;
    }

  private:
    detail::Handle<pith_bm25, pith_bm25_close> handle_;
};

/* ---- operators of your own ---- */

/* Makes an operator known to this process: pith::options<pith_operator>() gives one to fill in. Its
 * functions are called by C code, so no exception may leave them. */
inline void register_op(const pith_operator &op) {
    detail::attempt([&](pith_error *err) { return pith_register_op(&op, err); });
}

/* Operators of single models: o.operators = set.get(), of pith_open_options or
 * pith_source_options. What the descriptors point to must stay valid as long as models that were
 * opened with the set; the descriptors and the set itself need not. */
class OperatorSet {
  public:
    explicit OperatorSet(const std::vector<const pith_operator *> &operators) {
        pith_operator_set *set = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_operator_set_create(&set, operators.data(), operators.size(), nullptr, err);
        });
        handle_.reset(set);
    }
    const pith_operator_set *get() const noexcept { return handle_.get(); }

  private:
    detail::Handle<pith_operator_set, pith_operator_set_destroy> handle_;
};

/* The attributes of a node, for the functions of an operator. Lists are those of the model, not
 * copies. */
class OpNode {
  public:
    explicit OpNode(const pith_op_node *node) : node_(node) {}
    std::int64_t integer(const char *name) const noexcept { return pith_op_int(node_, name); }
    float number(const char *name) const noexcept { return pith_op_float(node_, name); }
    std::string_view string(const char *name) const noexcept {
        const pith_str text = pith_op_string(node_, name);
        return { text.data, text.size };
    }
    /* NULL: the node has no such attribute. */
    const pith_tensor *tensor(const char *name) const noexcept {
        return pith_op_tensor(node_, name);
    }
    /* Each with its first item and the number of items. */
    std::pair<const std::int64_t *, std::size_t> integers(const char *name) const noexcept {
        std::size_t count = 0;
        const std::int64_t *items = pith_op_ints(&count, node_, name);
        return { items, count };
    }
    std::pair<const float *, std::size_t> numbers(const char *name) const noexcept {
        std::size_t count = 0;
        const float *items = pith_op_floats(&count, node_, name);
        return { items, count };
    }
    std::pair<const pith_str *, std::size_t> strings(const char *name) const noexcept {
        std::size_t count = 0;
        const pith_str *items = pith_op_strings(&count, node_, name);
        return { items, count };
    }

  private:
    const pith_op_node *node_;
};

/* Memory for the state of an operator, for prepare: nothing destroys what is put there. NULL: there
 * is none. */
template <class T> T *op_state(pith_op_prepare *c) noexcept {
    static_assert(std::is_trivially_destructible_v<T>, "nothing destroys the state");
    void *memory = pith_op_state(c, sizeof(T));
    return memory ? new (memory) T() : nullptr;
}
/* The memory of an output whose shape run finds out. */
inline pith_status op_output(pith_op_run *r, std::int32_t output, pith_dtype dtype,
                             const std::vector<std::int64_t> &dims) noexcept {
    return pith_op_output(r, output, dtype, static_cast<std::int32_t>(dims.size()), dims.data());
}
/* Calls task(part, worker) for each part, on the threads of the run; it throws nothing. */
template <class Task> void op_parallel(pith_op_run *r, std::size_t parts, Task &&task) noexcept {
    pith_op_parallel(
        r,
        [](void *context, std::size_t part, int worker) {
            (*static_cast<std::remove_reference_t<Task> *>(context))(part, worker);
        },
        &task, parts);
}

} // namespace pith

#endif
