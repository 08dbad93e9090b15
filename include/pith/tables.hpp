/* tables.hpp - pith/tables.h for C++17, as pith.hpp is for the rest of the C interface. Its rules
 * hold here too. Programs link libpith-tables. */
#ifndef PITH_TABLES_HPP
#define PITH_TABLES_HPP

#include <pith/pith.hpp>
#include <pith/tables.h>

namespace pith {

template <> inline pith_database_options options<pith_database_options>() {
    pith_database_options o = PITH_DATABASE_OPTIONS_INIT;
    return o;
}

/* Where something is written, there are two forms: one that has a writer, and one that returns
 * all bytes. */

/* Infers the schema of a directory of tables, as JSON. */
inline void draft_schema(Writer &to, const std::string &source,
                         const pith_call &call = options<pith_call>()) {
    detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
        return pith_database_draft(source.c_str(), &call, writer, err);
    });
}
inline std::string draft_schema(const std::string &source,
                                const pith_call &call = options<pith_call>()) {
    return detail::collect([&](const pith_writer *writer, pith_error *err) {
        return pith_database_draft(source.c_str(), &call, writer, err);
    });
}

/* The bytes of a database file, made of a directory of tables. */
inline void make_database(Writer &to, const std::string &source,
                          const pith_database_options &o = options<pith_database_options>()) {
    detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
        return pith_database_make(source.c_str(), &o, writer, err);
    });
}
inline std::string make_database(
    const std::string &source, const pith_database_options &o = options<pith_database_options>()) {
    return detail::collect([&](const pith_writer *writer, pith_error *err) {
        return pith_database_make(source.c_str(), &o, writer, err);
    });
}

/* A database file that `make_database` made. */
class Database {
  public:
    Database() noexcept = default;
    explicit Database(const std::string &path, const pith_call &call = options<pith_call>()) {
        pith_database *handle = nullptr;
        detail::attempt(
            [&](pith_error *err) { return pith_database_open(&handle, path.c_str(), &call, err); });
        handle_.reset(handle);
    }
    pith_database *get() const noexcept { return handle_.get(); }
    std::string describe(const pith_call &call = options<pith_call>()) const {
        return detail::collect([&](const pith_writer *writer, pith_error *err) {
            return pith_database_describe(get(), &call, writer, err);
        });
    }
    /* The schema that it was made with, as JSON; empty if that is not known. */
    std::string schema() const {
        const pith_str text = pith_database_schema(get());
        return text.size ? std::string(text.data, text.size) : std::string();
    }
    /* Takes the statistics, the split and the classes of what a model keeps: see Relational::keep.
     */
    void follow(const Database &kept, const pith_call &call = options<pith_call>()) {
        detail::attempt(
            [&](pith_error *err) { return pith_database_follow(get(), kept.get(), &call, err); });
    }

  private:
    detail::Handle<pith_database, pith_database_close> handle_;
};

/* A model of a task of a database, which must outlive it. */
class Relational {
  public:
    Relational() noexcept = default;
    Relational(const Database &database, const std::string &task, const std::string &config = {},
               std::uint64_t seed = 0, const pith_call &call = options<pith_call>()) {
        pith_relational *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_relational_create(&handle, database.get(), task.c_str(),
                                          config.empty() ? nullptr : config.c_str(), seed, &call,
                                          err);
        });
        handle_.reset(handle);
    }
    /* The model of what save() returned. */
    static Relational load(const Database &database, std::string_view bytes,
                           const pith_call &call = options<pith_call>()) {
        Relational model;
        pith_relational *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_relational_load(&handle, database.get(), bytes.data(), bytes.size(), &call,
                                        err);
        });
        model.handle_.reset(handle);
        return model;
    }
    /* A model of a task of each of several databases, which must live as long as it. */
    static Relational over(const std::vector<const Database *> &databases,
                           const std::vector<std::string> &tasks, const std::string &config = {},
                           std::uint64_t seed = 0, const pith_call &call = options<pith_call>()) {
        Relational model;
        std::vector<const char *> names;
        for (const std::string &task : tasks) names.push_back(task.c_str());
        if (databases.size() != tasks.size())
            throw std::invalid_argument("one task for each database is wanted");
        pith_relational *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_relational_create_over(
                &handle, raw(databases).data(), names.data(), names.size(),
                config.empty() ? nullptr : config.c_str(), seed, &call, err);
        });
        model.handle_.reset(handle);
        return model;
    }
    static Relational load_over(const std::vector<const Database *> &databases,
                                std::string_view bytes,
                                const pith_call &call = options<pith_call>()) {
        Relational model;
        pith_relational *handle = nullptr;
        detail::attempt([&](pith_error *err) {
            return pith_relational_load_over(&handle, raw(databases).data(), databases.size(),
                                             bytes.data(), bytes.size(), &call, err);
        });
        model.handle_.reset(handle);
        return model;
    }
    /* Takes the parameters that save() of another model returned. */
    void start_from(std::string_view bytes, const pith_call &call = options<pith_call>()) {
        detail::attempt([&](pith_error *err) {
            return pith_relational_start_from(get(), bytes.data(), bytes.size(), &call, err);
        });
    }
    /* The configuration of a saved model; empty: the defaults. */
    static std::string config(std::string_view bytes,
                              const pith_call &call = options<pith_call>()) {
        pith_str text{ nullptr, 0 };
        detail::attempt([&](pith_error *err) {
            return pith_relational_config(&text, bytes.data(), bytes.size(), &call, err);
        });
        return text.data ? std::string(text.data, text.size) : std::string();
    }
    pith_relational *get() const noexcept { return handle_.get(); }
    void save(Writer &to, const pith_call &call = options<pith_call>()) const {
        detail::write_to(to, [&](const pith_writer *writer, pith_error *err) {
            return pith_relational_save(get(), &call, writer, err);
        });
    }
    std::string save(const pith_call &call = options<pith_call>()) const {
        return detail::collect([&](const pith_writer *writer, pith_error *err) {
            return pith_relational_save(get(), &call, writer, err);
        });
    }
    /* What the model keeps of its database, as the bytes of a database file: a later database
     * follows it. */
    std::string keep(const pith_call &call = options<pith_call>()) const {
        return detail::collect([&](const pith_writer *writer, pith_error *err) {
            return pith_relational_keep(get(), &call, writer, err);
        });
    }
    pith_relational_state state() const {
        pith_relational_state s = PITH_RELATIONAL_STATE_INIT;
        pith_relational_get_state(&s, get());
        return s;
    }
    /* Returns the mean loss of the steps. */
    double train(std::int64_t steps, const pith_call &call = options<pith_call>()) {
        double loss = 0;
        detail::attempt([&](pith_error *err) {
            return pith_relational_train(&loss, get(), steps, &call, err);
        });
        return loss;
    }
    pith_relational_metrics evaluate(std::int32_t split = PITH_SPLIT_OF_TEST,
                                     const pith_call &call = options<pith_call>()) {
        pith_relational_metrics m = PITH_RELATIONAL_METRICS_INIT;
        detail::attempt([&](pith_error *err) {
            return pith_relational_evaluate(&m, get(), split, &call, err);
        });
        return m;
    }
    struct Part {
        std::vector<std::uint32_t> rows;
        std::vector<double> labels;
    };
    Part part(std::int32_t split = PITH_SPLIT_OF_TEST,
              const pith_call &call = options<pith_call>()) const {
        Part all;
        std::size_t count = 0;
        detail::attempt([&](pith_error *err) {
            return pith_relational_part(nullptr, nullptr, &count, get(), split, &call, err);
        });
        all.rows.resize(count);
        all.labels.resize(count);
        if (count)
            detail::attempt([&](pith_error *err) {
                return pith_relational_part(all.rows.data(), all.labels.data(), &count, get(),
                                            split, &call, err);
            });
        return all;
    }
    struct Importance {
        std::string table, column; /* column: empty for the whole table */
        double rise = 0;           /* of the loss */
    };
    /* What the model reads, the most important first, on up to so many rows. */
    std::vector<Importance> importance(std::int32_t split = PITH_SPLIT_OF_TEST,
                                       std::size_t rows = 1000,
                                       const pith_call &call = options<pith_call>()) {
        std::vector<Importance> all;
        detail::attempt([&](pith_error *err) {
            return pith_relational_importance(
                get(), split, rows, &call,
                [](void *user, pith_str table, pith_str column, double rise) {
                    static_cast<std::vector<Importance> *>(user)->push_back(
                        { std::string(table.data, table.size),
                          column.data ? std::string(column.data, column.size) : std::string(),
                          rise });
                },
                &all, err);
        });
        return all;
    }
    /* The names of the baselines, in the order of their numbers. */
    static std::vector<std::string> baselines() {
        std::vector<std::string> names;
        while (const char *name = pith_baseline_name(static_cast<std::int32_t>(names.size())))
            names.emplace_back(name);
        return names;
    }
    /* Trains a baseline for the model's task and measures it. */
    pith_relational_metrics evaluate_baseline(std::int32_t baseline,
                                              std::int32_t split = PITH_SPLIT_OF_TEST,
                                              const pith_call &call = options<pith_call>()) const {
        pith_relational_metrics m = PITH_RELATIONAL_METRICS_INIT;
        detail::attempt([&](pith_error *err) {
            return pith_baseline_evaluate(&m, get(), baseline, split, &call, err);
        });
        return m;
    }
    /* Trains a baseline, which answers from then on; -1: the network does. */
    void answer_by(std::int32_t baseline, const pith_call &call = options<pith_call>()) {
        detail::attempt([&](pith_error *err) {
            return pith_relational_answer_by(get(), baseline, &call, err);
        });
    }
    std::string save_baseline(const pith_call &call = options<pith_call>()) const {
        return detail::collect([&](const pith_writer *writer, pith_error *err) {
            return pith_relational_save_baseline(get(), &call, writer, err);
        });
    }
    void load_baseline(std::string_view bytes, const pith_call &call = options<pith_call>()) {
        detail::attempt([&](pith_error *err) {
            return pith_relational_load_baseline(get(), bytes.data(), bytes.size(), &call, err);
        });
    }
    /* The network as the bytes of an ONNX file. */
    std::string export_onnx(const pith_call &call = options<pith_call>()) const {
        return detail::collect([&](const pith_writer *writer, pith_error *err) {
            return pith_relational_export(get(), &call, writer, err);
        });
    }
    /* Its inputs for some rows; each is called with name and value, which is gone afterwards. */
    template <typename Each>
    void inputs(const std::vector<std::uint32_t> &rows, Each each,
                const pith_call &call = options<pith_call>()) {
        detail::attempt([&](pith_error *err) {
            return pith_relational_inputs(
                get(), rows.data(), rows.size(), &call,
                [](void *user, const char *name, const pith_tensor *value) {
                    (*static_cast<Each *>(user))(name, *value);
                },
                &each, err);
        });
    }
    std::uint32_t find_row(std::string_view key,
                           const pith_call &call = options<pith_call>()) const {
        std::uint32_t row = 0;
        detail::attempt([&](pith_error *err) {
            return pith_relational_find_row(&row, get(), pith_str{ key.data(), key.size() }, &call,
                                            err);
        });
        return row;
    }
    /* The names of the classes; none where the target is no class. */
    std::vector<std::string> classes() const {
        std::vector<std::string> names;
        for (;;) {
            const pith_str name =
                pith_relational_class(get(), static_cast<std::int32_t>(names.size()));
            if (!name.data) return names;
            names.emplace_back(name.data, name.size);
        }
    }
    /* One number for each row; for classes as many as there are classes. */
    std::vector<float> predict(const std::vector<std::uint32_t> &rows,
                               const pith_call &call = options<pith_call>()) {
        std::vector<float> answers(rows.size() * static_cast<std::size_t>(state().outputs));
        detail::attempt([&](pith_error *err) {
            return pith_relational_predict(answers.data(), get(), rows.data(), rows.size(), &call,
                                           err);
        });
        return answers;
    }

  private:
    static std::vector<const pith_database *> raw(const std::vector<const Database *> &databases) {
        std::vector<const pith_database *> all;
        for (const Database *database : databases) all.push_back(database->get());
        return all;
    }
    detail::Handle<pith_relational, pith_relational_destroy> handle_;
};

} // namespace pith

#endif
