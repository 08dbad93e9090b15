/* test_pith.cpp - pith.hpp gives what the C interface gives, frees what it makes, and turns errors
 * into exceptions.
 *
 * usage: test_pith DATA_DIR, with the default model in the cache */
#include <pith/pith.hpp>
#include <pith/tables.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <list>
#include <set>
#include <sstream>
#include <stdexcept>

namespace {

std::string data;
int checks = 0;

void check(bool good, const char *what, int line) {
    checks++;
    if (good) return;
    std::cerr << "test_pith.cpp:" << line << ": " << what << "\n";
    std::exit(1);
}
#define CHECK(what) check((what), #what, __LINE__)

/* The code of the exception that call throws; PITH_OK if it throws none. */
template <class Call> pith_status thrown(Call &&call, const char *says = "") {
    try {
        call();
    } catch (const pith::Error &e) {
        if (!std::strstr(e.what(), says)) std::cerr << e.what() << "\n";
        return std::strstr(e.what(), says) ? e.code() : PITH_OK;
    }
    return PITH_OK;
}

double cosine(const float *a, const float *b, std::size_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < n; i++)
        ab += double(a[i]) * b[i], aa += double(a[i]) * a[i], bb += double(b[i]) * b[i];
    return ab / std::sqrt(aa * bb);
}

/* Rows that come page by page, with ids; changes; files. */
void test_index(const pith::Vectors &v, const std::vector<std::vector<pith_hit>> &hits) {
    const std::int64_t ids[] = { 10, 20, 30 };
    std::size_t page = 0;
    auto next = [&] {
        pith::SearchIndex::Page p;
        if (page < v.size()) p = { v[page], ids + page, 1 };
        page++;
        return p;
    };
    auto index = pith::SearchIndex::build(next, v.dim());
    CHECK(index.dim() == 384 && index.size() == 3 && index.metric() == PITH_METRIC_COSINE);
    const auto found = index.search(v, 2);
    for (std::size_t q = 0; q < 3; q++)
        for (std::size_t i = 0; i < 2; i++)
            CHECK(found[q][i].index == 10 * (hits[q][i].index + 1) &&
                  found[q][i].score == hits[q][i].score);
    index.add(v[0], nullptr, 1);
    CHECK(index.size() == 4 && index.remove(ids, 2) == 2 && index.size() == 2);
    const std::string path = "test_pith.pix";
    std::ofstream(path, std::ios::binary) << index.save();
    pith::SearchIndex::verify(path);
    const auto opened = pith::SearchIndex::open(path, v.dim());
    CHECK(opened.size() == 2 && opened.search(v, 1)[0][0].index == 31);
    std::remove(path.c_str());
    bool thrown = false;
    try {
        pith::SearchIndex::build([]() -> pith::SearchIndex::Page { throw 7; }, 3);
    } catch (int seven) { thrown = seven == 7; }
    CHECK(thrown);
}

void test_embed() {
    pith::Model model("all-MiniLM-L6-v2");
    CHECK(model.dim() == 384 && model.max_length() == 256);
    const pith::Vectors v = model.embed(
        { "A cat sat on the mat.", "A kitten rested on the rug.", "Interest rates rose." });
    CHECK(v.size() == 3 && v.dim() == 384);
    CHECK(cosine(v[0], v[1], 384) > cosine(v[0], v[2], 384));
    /* every kind of list of texts, the same bits */
    const std::vector<std::string> strings = { "A cat sat on the mat." };
    const std::list<const char *> pointers = { "A cat sat on the mat." };
    const std::set<std::string_view> views = { "A cat sat on the mat." };
    for (const pith::Texts &texts :
         { pith::Texts(strings), pith::Texts(pointers), pith::Texts(views) })
        CHECK(!std::memcmp(model.embed(texts)[0], v[0], 384 * sizeof(float)));
    auto o = pith::options<pith_embed_options>();
    o.dim = 64;
    CHECK(model.embed(strings, o).dim() == 64);
    CHECK(model.embed(std::vector<std::string>()).size() == 0);
    CHECK(model.predict(10, 20).total > 0);
    CHECK(thrown([&] { model.embed({ "fine", "\xff" }); }, "text 1") == PITH_ERR_ARGUMENT);
    CHECK(thrown([] { pith::Model("/nowhere"); }, "/nowhere") == PITH_ERR_NOT_FOUND);
    const auto chunks = model.chunks("one two three");
    CHECK(chunks.size() == 1 && chunks[0].end == 13);
    std::vector<double> sums(v[0], v[0] + 384);
    CHECK(std::fabs(model.chunk_mean(sums, 1)[5] - v[0][5]) < 1e-6);
    CHECK(model.tokenizer() && model.tokenizer()->tokenize("cat").ids() ==
                                   (std::vector<std::int32_t>{ 101, 4937, 102 }));
    CHECK(model.inputs().size() >= 2 && model.outputs().size() >= 1 && model.bytes() > 0);
    CHECK(model.statistics().texts > 3);
    CHECK(pith::statistics_text(model.statistics(), PITH_STATISTICS_JSON).front() == '{');
    CHECK(std::string(model.runtime().name) == "builtin" && !model.runtime().fallback);
    model.reset_statistics();
    CHECK(model.statistics().texts == 0);
    model.trim();
    CHECK(!model.describe(PITH_DESCRIBE_NODES).empty());
    /* quantisation */
    auto q = pith::options<pith_quantize_options>();
    q.type = PITH_VECTOR_UBINARY;
    CHECK(pith::quantize(v, q).size() == 3 * 48);
    CHECK(pith::quantize_ranges(v).size() == 2);
    /* search */
    const pith::SearchIndex index(v);
    const auto hits = index.search(v, 2);
    CHECK(index.size() == 3 && hits.size() == 3 && hits[1][0].index == 1 && hits[0].size() == 2);
    CHECK(index.bytes() > 0);
    test_index(v, hits);
    /* moves */
    pith::Model other = std::move(model);
    CHECK(!model.get() && other.dim() == 384);
    model = std::move(other);
    CHECK(model.dim() == 384);
    pith::Vectors moved = model.embed({ "x" }), to = std::move(moved);
    CHECK(to.size() == 1);
}

void test_compiled() {
    pith::Model model("all-MiniLM-L6-v2");
    const std::string file = model.save();
    pith::Model again = pith::Model::from_memory(file.data(), file.size());
    CHECK(!std::memcmp(model.embed({ "the same" })[0], again.embed({ "the same" })[0],
                       384 * sizeof(float)));
    const std::string path = "test_pith.pith";
    std::ofstream(path, std::ios::binary) << file;
    pith::Source::file(path).verify();
    std::ofstream(path, std::ios::binary) << file.substr(0, file.size() / 2);
    CHECK(thrown([&] { pith::Source::file(path).verify(); }) == PITH_ERR_FORMAT);
    std::remove(path.c_str());
    auto o = pith::options<pith_open_options>();
    CHECK(thrown([&] { again.calibrate(); }) == PITH_ERR_ARGUMENT);
    CHECK(pith::Source(data + "/models/bert-base-script14-eager/model.onnx").check_fusions() == 0);
    o.optimization = 9;
    CHECK(thrown([&] { pith::Model("all-MiniLM-L6-v2", o); }, "optimization is 9") ==
          PITH_ERR_ARGUMENT);
}

/* A flag, a time, and neither. */
void test_stopped() {
    const pith::Model model("all-MiniLM-L6-v2");
    auto o = pith::options<pith_embed_options>();
    pith::Cancel cancel;
    o.call.cancel = cancel.flag();
    CHECK(model.embed({ "a" }, o).size() == 1);
    cancel.request();
    CHECK(cancel.requested());
    CHECK(thrown([&] { model.embed({ "a" }, o); }) == PITH_ERR_CANCELLED);
    cancel.reset();
    o.call.deadline_ns = pith::deadline(std::chrono::hours(1));
    CHECK(o.call.deadline_ns > pith::clock_now());
    CHECK(model.embed({ "a" }, o).size() == 1);
    o.call.deadline_ns = pith::deadline(std::chrono::steady_clock::now() - std::chrono::seconds(1));
    CHECK(thrown([&] { model.embed({ "a" }, o); }) == PITH_ERR_DEADLINE);
    CHECK(pith::deadline(std::chrono::steady_clock::time_point::min()) != 0);
}

/* What is written to a stream and to a function is what becomes a string. */
void test_writers() {
    const pith::Model model("all-MiniLM-L6-v2");
    const std::string file = model.save();
    std::ostringstream stream;
    pith::Writer to_stream(stream);
    model.save(to_stream);
    CHECK(stream.str() == file);
    std::string pieces;
    std::uint64_t total = 0;
    pith::Writer to_function(
        [&](std::string_view piece) {
            pieces.append(piece);
            return true;
        },
        [&](std::uint64_t bytes) { total = bytes; });
    model.save(to_function);
    CHECK(pieces == file && total == file.size());
    pith::Writer refuses([](std::string_view) { return false; });
    CHECK(thrown([&] { model.save(refuses); }, "could not be written") == PITH_ERR_IO);
    CHECK(thrown([&] { model.describe(PITH_DESCRIBE_NODES, refuses); }) == PITH_ERR_IO);
    stream.setstate(std::ios::badbit);
    CHECK(thrown([&] { model.save(to_stream); }) == PITH_ERR_IO);
    pith::Writer throws([](std::string_view) -> bool { throw std::range_error("mine"); });
    bool mine = false;
    try {
        pith::Source(data + "/hf/bert").export_onnx(throws);
    } catch (const std::range_error &) { mine = true; }
    CHECK(mine);
    std::string exported;
    pith::Writer to_string(exported);
    pith::Source(data + "/hf/bert").export_onnx(to_string);
    CHECK(exported == pith::Source(data + "/hf/bert").export_onnx());
}

void test_written() {
    const pith::Source source(data + "/hf/bert");
    const std::string file = source.export_onnx();
    pith_quantize_model_report report = PITH_QUANTIZE_MODEL_REPORT_INIT;
    auto o = pith::options<pith_quantize_model_options>();
    o.scheme = PITH_QUANTIZE_BLOCKS4;
    const std::string small = source.quantize_onnx(o, &report);
    CHECK(report.matmuls == 12 && report.model_bytes == small.size() && small.size() < file.size());
    const pith::Model from_source(source);
    CHECK(std::string(source.report().format) == "safetensors" && !from_source.outputs().empty());
    pith::Model from_file = pith::Model::from_memory(file.data(), file.size());
    pith::Model from_small = pith::Model::from_memory(small.data(), small.size());
    pith_optimize_report fused = PITH_OPTIMIZE_REPORT_INIT;
    const std::string fast = source.optimize_onnx(pith::options<pith_optimize_options>(), &fused);
    CHECK(fused.model_bytes == fast.size() && fused.fusions > 10 &&
          fused.nodes < fused.nodes_before);
    const std::string text =
        pith::Source::file(data + "/models/bert-base-script17-sdpa/model.onnx").convert();
    CHECK(text.substr(0, 16) == "<\n  ir_version: ");
    auto back = pith::options<pith_convert_options>();
    back.to = PITH_CONVERT_TEXT;
    CHECK(thrown([&] { pith::Source::file("missing.onnx").convert(back); }, "missing.onnx") ==
          PITH_ERR_NOT_FOUND);
    auto odd = pith::options<pith_optimize_options>();
    odd.level = 4;
    CHECK(thrown([&] { source.optimize_onnx(odd); }, "level 4") == PITH_ERR_ARGUMENT);
    o.block = 48;
    CHECK(thrown([&] { source.quantize_onnx(o); }, "block is 48") == PITH_ERR_ARGUMENT);
}

void test_routes() {
    const std::string path = data + "/modules/asym";
    auto o = pith::options<pith_open_options>();
    pith::Model query(path);
    CHECK(query.route() == "query" &&
          query.routes() == std::vector<std::string>({ "query", "doc" }));
    o.route = "doc";
    pith::Model doc(path, o);
    const std::string file = pith::Model::save_routes({ &query, &doc });
    pith::Model again = pith::Model::from_memory(file.data(), file.size(), o);
    CHECK(again.route() == "doc");
    CHECK(!std::memcmp(doc.embed({ "a b" })[0], again.embed({ "a b" })[0],
                       doc.dim() * sizeof(float)));
    CHECK(thrown(
              [&] {
                  pith::Model::save_routes({ &query, &query });
              },
              "both of route 'query'") == PITH_ERR_ARGUMENT);
    CHECK(thrown([&] { pith::Model::save_routes({}); }) == PITH_ERR_ARGUMENT);
}

void test_scores() {
    pith::Model cross(data + "/tasks/cross-bert");
    const auto scores =
        cross.rerank("what is the capital of france?",
                     { "A cat sat on the mat.", "Paris is the capital of France." });
    CHECK(scores.size() == 2);
    pith::Model labels(data + "/tasks/labels-bert");
    CHECK(labels.labels().size() == 3);
    CHECK(labels.classify({ "good", "bad" }).dim() == 3);
    CHECK(labels.classify({ "good" }, { "a pair" }).size() == 1);
    bool refused = false;
    try {
        labels.classify({ "good" }, { "a", "b" });
    } catch (const std::invalid_argument &) { refused = true; }
    CHECK(refused);
}

/* Texts as tokens have the bits of the texts; a bad one is no exception where results are asked
 * for. */
void test_tokens_in() {
    pith::Model model(data + "/encode/splade-max"), cross(data + "/tasks/cross-bert");
    const std::vector<std::string> texts = { "w20 w21", "w30" };
    std::vector<pith::Tokens> rows;
    std::vector<std::vector<std::int32_t>> ids;
    for (const auto &text : texts) rows.push_back(model.tokenizer()->tokenize(text));
    for (const auto &row : rows) ids.push_back(row.ids());
    auto o = pith::options<pith_encode_options>();
    o.what = PITH_ENCODE_SPARSE;
    const pith::Encoded wanted = model.encode(texts, o);
    const pith::Encoded got[] = { model.encode(pith::TokenTexts(rows), o),
                                  model.encode(pith::TokenTexts(ids), o) };
    for (const auto &e : got)
        CHECK(e->sparse.offsets[2] == wanted->sparse.offsets[2] &&
              !std::memcmp(e->sparse.values, wanted->sparse.values,
                           std::size_t(e->sparse.offsets[2]) * sizeof(float)));
    std::vector<pith::Tokens> pairs;
    pairs.push_back(cross.tokenizer()->tokenize("a question", "an answer"));
    CHECK(cross.rerank(pith::TokenTexts(pairs)) == cross.rerank("a question", { "an answer" }));
    auto s = pith::options<pith_score_options>();
    std::vector<pith_text_result> results(2);
    pith::TokenTexts bad(pairs);
    const std::int32_t none[] = { -1 };
    bad.add({ none, nullptr, 1, 0 });
    CHECK(thrown([&] { cross.classify(bad); }, "text 1: id -1") == PITH_ERR_ARGUMENT);
    s.results = results.data();
    const pith::Vectors scores = cross.classify(bad, s);
    CHECK(results[0].status == PITH_OK && results[1].status == PITH_ERR_ARGUMENT);
    CHECK(scores[1][0] != scores[1][0] && scores[0][0] == scores[0][0]);
}

void test_encode() {
    pith::Model splade(data + "/encode/splade-max");
    CHECK(splade.can_encode() & PITH_ENCODE_SPARSE);
    auto o = pith::options<pith_encode_options>();
    o.what = PITH_ENCODE_SPARSE;
    pith::Encoded e = splade.encode({ "one two", "three" }, o);
    auto memory = pith::options<pith_encode_memory>();
    std::int64_t offsets[3];
    std::vector<std::int32_t> indices(std::size_t(e->sparse.offsets[2]));
    std::vector<float> values(indices.size());
    memory.sparse = { offsets, indices.data(), values.data(), 3, indices.size(), values.size() };
    CHECK(splade.encode_into(memory, { "one two", "three" }, o).sparse.values == values.data());
    CHECK(!std::memcmp(values.data(), e->sparse.values, values.size() * sizeof(float)) &&
          offsets[2] == e->sparse.offsets[2]);
    memory.sparse.value_room--;
    CHECK(thrown(
              [&] {
                  splade.encode_into(memory, { "one two", "three" }, o);
              },
              "sparse.values") == PITH_ERR_ARGUMENT);
    CHECK(e->texts == 2 && e->sparse.offsets[2] > 0);
    pith::Encoded moved = std::move(e);
    CHECK((*moved).texts == 2);
    const pith::Bm25 bm25(data + "/lexical/stops");
    pith::Bm25Rows rows = bm25.encode({ "the running dogs", "run" }, PITH_ROLE_QUERY);
    CHECK(rows->offsets[2] == 3 && rows->values[0] == 1);
    pith::Bm25Rows taken = std::move(rows);
    CHECK(taken->offsets[1] == 2);
    CHECK(pith::Bm25::languages().find("english") != std::string::npos);
    auto b = pith::options<pith_bm25_options>();
    b.language = "klingon";
    CHECK(thrown([&] { pith::Bm25("", b); }, "klingon") == PITH_ERR_ARGUMENT);
}

void test_tokens() {
    const pith::Tokenizer t("all-MiniLM-L6-v2");
    CHECK(t.tokenize("cat", "dog").size() == 5);
    std::vector<std::size_t> ends;
    const pith::Tokens all = t.tokenize(std::vector<std::string>{ "cat", "cat dog" }, ends);
    CHECK(ends.size() == 2 && ends[1] == all.size() && all[0] == 101 && all->special[0] == 1);
    CHECK(t.detokenize({ 101, 4937, 102 }) == "cat");
    CHECK(t.token(4937) == "cat" && !t.token(-1));
    CHECK(t.limit("all-MiniLM-L6-v2") == 256);
    pith::TextStream stream(t);
    std::string text(stream.push(4937));
    text += stream.finish();
    CHECK(text.find("cat") != std::string::npos);
    pith::Tokens moved = t.tokenize("cat"), to = std::move(moved);
    CHECK(to.size() == 3 && moved.size() == 0);
    to = t.tokenize("cat dog");
    CHECK(to.size() == 4);
}

void test_session() {
    pith::Model model(data + "/models/bert-base-script14-eager/model.onnx");
    pith::Session session(model);
    const std::vector<std::int64_t> ids = { 2, 5, 6, 3 }, mask = { 1, 1, 1, 1 },
                                    types = { 0, 0, 0, 0 };
    std::vector<std::pair<std::string, pith_tensor>> inputs;
    for (const pith_port *port : model.inputs()) {
        const std::string name = port->name;
        const auto &values = name == "input_ids" ? ids : name == "attention_mask" ? mask : types;
        inputs.emplace_back(name, pith::tensor(values.data(), { 1, 4 }));
    }
    const auto &outputs = session.run(inputs);
    CHECK(outputs[0].rank == 3 && outputs[0].dims[1] == 4 && outputs[0].dtype == PITH_F32);
    CHECK(pith::shape_text(outputs[0]).substr(0, 5) == "[1, 4");
    CHECK(pith::elements<double>(outputs[0]).size() == outputs[0].bytes / sizeof(float));
    CHECK(thrown(
              [&] {
                  session.run({ { "nothing", inputs[0].second } });
              },
              "nothing") == PITH_ERR_ARGUMENT);
    CHECK(session.run(inputs).size() == model.outputs().size()); /* still usable */
    const std::vector<float> expected = pith::elements<float>(session.run(inputs)[0]);
    std::vector<float> memory(expected.size());
    for (const auto &input : inputs) session.bind_input(input.first, input.second);
    session.bind_output(model.outputs()[0]->name,
                        pith::tensor(memory.data(), { 1, 4, std::int64_t(memory.size() / 4) }));
    CHECK(session.run()[0].data == memory.data() && memory == expected);
    session.bind_output(model.outputs()[0]->name,
                        pith::tensor(memory.data(), { 1, 3, std::int64_t(memory.size() / 4) }));
    CHECK(thrown([&] { session.run(); }, "has shape [1, 4") == PITH_ERR_ARGUMENT);
    session.unbind();
    CHECK(thrown([&] { session.run(); }, "missing inputs") == PITH_ERR_ARGUMENT);
    auto few = pith::options<pith_session_pool_options>();
    few.sessions = 1;
    pith::SessionPool pool(model, few);
    {
        pith::Session borrowed = pool.borrow();
        CHECK(pith::elements<float>(borrowed.run(inputs)[0]) == expected);
        CHECK(thrown([&] { pool.borrow(0); }, "all 1 sessions") == PITH_ERR_BUSY);
    }
    CHECK(pool.borrow(0).run(inputs).size() == model.outputs().size() &&
          model.statistics().sessions_borrowed == 1);
    pool.trim();
    CHECK(model.statistics().sessions_idle == 0);
    CHECK(pith::shape_parse("1x3x4") == (std::vector<std::int64_t>{ 1, 3, 4 }) &&
          pith::shape_bytes(PITH_F32, { 2, 3 }) == 24);
    CHECK(pith::element_name(PITH_F16) == "float16" && pith::element_dtype("int8") == PITH_I8 &&
          pith::element_bits(PITH_U4) == 4);
    const std::string path = "test_pith.pb";
    std::ofstream(path, std::ios::binary)
        << pith::ValueFile::bytes(inputs[0].second, "x", PITH_I64);
    const pith::ValueFile file(path, PITH_I64);
    CHECK(std::string(file.name()) == "x" && file.tensor().dims[1] == 4);
    std::remove(path.c_str());
}

void test_images(const std::string &module) {
    auto o = pith::options<pith_image_options>();
    o.module_path = module.c_str();
    o.channels = 3;
    std::vector<pith::Image> images;
    images.emplace_back(data + "/images/rgb.png", o);
    images.push_back(pith::Image(data + "/images/rgb.bmp", o));
    CHECK(images[0].get().channels == 3);
    auto e = pith::options<pith_image_encode_options>();
    e.module_path = module.c_str();
    const std::string png = images[0].encode(e);
    const pith::Image back = pith::Image::decode(png.data(), png.size(), o);
    CHECK(!std::memcmp(back.get().pixels, images[0].get().pixels,
                       static_cast<std::size_t>(back.get().width) *
                           static_cast<std::size_t>(back.get().height) * 3));
    auto r = pith::options<pith_image_resize_options>();
    r.width = r.height = 8;
    CHECK(images[0].resized(r).get().width == 8 && images[0].center_crop(4, 5).get().height == 5);
    pith::Model clip(data + "/vision/clip");
    CHECK(clip.embed_images(images).dim() == 12 && clip.embed({ "w5" }).dim() == 12);
    o.channels = 0;
    std::vector<pith::Image> portraits;
    portraits.emplace_back(data + "/faces/face_1.jpg", o);
    const auto faces =
        pith::Model(data + "/yunet/yunet-s-640-other-sizes/model.onnx").detect(portraits);
    CHECK(faces.size() == 1 && faces[0].size() == 1 && faces[0][0].score > 0.9f);
    const pith::ImageProcessor processor(data + "/vision/clip");
    CHECK(processor.shape(images[0])[1] == 24 &&
          processor.process(images[0]).size() == 3 * 24 * 24);
    std::ifstream in(data + "/images/rgb.bmp", std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    pith::Image decoded = pith::Image::decode(bytes.str().data(), bytes.str().size(), o),
                moved = std::move(decoded);
    CHECK(moved.get().width == images[1].get().width && !decoded.get().pixels);
    CHECK(thrown([&] { pith::Image::decode("no picture", 10, o); }) == PITH_ERR_UNSUPPORTED);
    pith::Image::use_module(nullptr);
}

/* The operators of examples/selective_build/advanced, in C++. */
void test_own_operators() {
    struct Threshold {
        float limit;
    };
    auto soft = pith::options<pith_operator>();
    soft.domain = "example";
    soft.name = "SoftThreshold";
    soft.min_inputs = soft.max_inputs = soft.max_outputs = 1;
    soft.types = "f32";
    soft.attributes = "limit float = 0.5; names strings; sizes ints; scales floats; table tensor; "
                      "mode string = plain; n int = 7";
    soft.infer = [](pith_op_infer *c) {
        c->out[0] = *c->in[0];
        return PITH_OK;
    };
    soft.prepare = [](pith_op_prepare *c) {
        const pith::OpNode node(c->node);
        auto *state = pith::op_state<Threshold>(c);
        if (!state) return PITH_ERR_MEMORY;
        state->limit = node.number("limit");
        c->state = state;
        const bool rest = node.integer("n") == 7 && node.string("mode") == "plain" &&
                          !node.tensor("table") && !node.integers("sizes").second &&
                          !node.numbers("scales").second && !node.strings("names").first;
        return rest ? PITH_OK : PITH_ERR_RUN;
    };
    soft.run = [](pith_op_run *r) {
        const float limit = static_cast<const Threshold *>(r->state)->limit;
        const auto *x = static_cast<const float *>(r->in[0]->data);
        auto *y = static_cast<float *>(r->out[0]->data);
        pith::op_parallel(
            r, static_cast<std::size_t>(pith_shape_count(r->in[0]->dims, r->in[0]->rank)),
            [&](std::size_t i, int) {
                y[i] = x[i] > limit ? x[i] - limit : x[i] < -limit ? x[i] + limit : 0;
            });
        return PITH_OK;
    };
    pith::register_op(soft);
    CHECK(thrown([&] { pith::register_op(soft); }, "was registered before") == PITH_ERR_ARGUMENT);
    auto range = pith::options<pith_operator>();
    range.domain = "example";
    range.name = "RowRange";
    range.min_inputs = range.max_inputs = range.max_outputs = 1;
    range.flags = PITH_OPERATOR_DYNAMIC;
    CHECK(thrown([&] { pith::register_op(range); }, "example::RowRange: it has no infer") ==
          PITH_ERR_ARGUMENT);
    range.infer = [](pith_op_infer *c) {
        c->out[0].dtype = PITH_F32;
        return PITH_OK;
    };
    range.run = [](pith_op_run *r) {
        const pith_tensor &x = *r->in[0];
        const pith_status status = pith::op_output(r, 0, PITH_F32, { x.dims[0] });
        if (status != PITH_OK) return status;
        for (std::int64_t i = 0; i < x.dims[0]; i++) {
            const float *row = static_cast<const float *>(x.data) + i * x.dims[1];
            const auto ends = std::minmax_element(row, row + x.dims[1]);
            static_cast<float *>(r->out[0]->data)[i] = *ends.second - *ends.first;
        }
        return PITH_OK;
    };
    const std::string path = data + "/../../examples/selective_build/advanced/model.onnx";
    auto own = pith::options<pith_open_options>();
    {
        const pith::OperatorSet set({ &soft, &range });
        own.operators = set.get();
        const pith::Model single(path, own);
        CHECK(thrown([&] { pith::Model other(path); }, "RowRange") == PITH_ERR_UNSUPPORTED);
        CHECK(pith_model_output_count(single.get()) == 1);
    }
    CHECK(thrown([&] { pith::OperatorSet({ &soft, &soft }); }, "twice") == PITH_ERR_ARGUMENT);
    pith::register_op(range);
    const pith::Model model(path);
    pith::Session session(model);
    std::vector<float> x = { 1, 2, 3, 4, 0, -5, 0.25f, 9, 7, 7, 7, 7 };
    const auto y = session.run({ { "x", pith::tensor(x.data(), { 3, 4 }) } });
    CHECK(y.size() == 1 && y[0].dims[0] == 3);
    const auto *found = static_cast<const float *>(y[0].data);
    CHECK(found[0] == 3.5f && found[1] == 13 && found[2] == 1.5f);
}

void test_rest() {
    pith::Profile profile;
    auto o = pith::options<pith_open_options>();
    o.call.profile = profile.get();
    pith::Model model(data + "/tasks/cross-bert", o);
    profile.phase("mine", pith::Profile::now());
    const std::string json = profile.json();
    CHECK(json.find("\"mine\"") != std::string::npos && json.find("\"open\"") != std::string::npos);
    CHECK(pith::version() == pith_version() && pith::cpu().threads >= 1 &&
          *pith::build().runtimes && pith::memory().total > 0);
    CHECK(pith::valid_prefix("ab\xff") == 2);
    CHECK(pith::locate(data) == data && !pith::locate().empty());
    pith::pin_threads(false);
    pith::set_threads(1);
    pith::set_threads(0);
    pith::set_spin(-1);
    pith::set_executor(nullptr);
    pith::stop_threads();
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    data = argv[1];
    test_embed();
    test_compiled();
    test_stopped();
    test_writers();
    test_written();
    test_routes();
    test_scores();
    test_tokens_in();
    test_encode();
    test_tokens();
    test_session();
    test_images(argv[2]);
    test_own_operators();
    test_rest();
    std::cout << checks << " checks passed\n";
}
