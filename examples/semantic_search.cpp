/* semantic_search.cpp - finds the texts whose meaning is nearest to a question, in C++.
 *
 *     c++ -std=c++17 semantic_search.cpp $(pkg-config --cflags --libs pith) -o semantic_search
 *     ./semantic_search all-MiniLM-L6-v2 "where do animals sleep"
 */
#include <pith/pith.hpp>

#include <cstdio>

int main(int argc, char **argv) try {
    const std::vector<std::string> texts = {
        "the cat sleeps in the barn",  "interest rates rose again", "bread needs flour and water",
        "the stock market fell today", "a dog lay by the fire",     "the train was an hour late"
    };
    const std::string question = argc > 2 ? argv[2] : "where do animals sleep";
    const pith::Model model(argc > 1 ? argv[1] : "all-MiniLM-L6-v2");
    const pith::Vectors vectors = model.embed(texts);
    const pith::SearchIndex index(vectors); /* looks at the vectors where they are */
    const auto hits = index.search(model.embed({ question }), 3);
    for (const pith_hit &hit : hits[0])
        std::printf("%.3f  %s\n", double(hit.score), texts[std::size_t(hit.index)].c_str());
} catch (const pith::Error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
