// SPDX-License-Identifier: MIT
// A C++17 caller: handles that free themselves, errors that are exceptions, results that are
// values.
#include <callbox.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace box
{
struct Error : std::runtime_error {
        explicit Error(const cbx_error &error)
            : std::runtime_error(std::string(error.text) + (error.hint[0] ? "; to fix it: " : "") +
                                 error.hint)
        {
        }
};

template <auto Free> struct Freed {
        template <class T> void operator()(T *handle) const
        {
                Free(handle);
        }
};
using Warden = std::unique_ptr<cbx_warden, Freed<cbx_warden_close>>;
using Policy = std::unique_ptr<cbx_policy, Freed<cbx_policy_unref>>;

Warden open()
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden = nullptr;

        if (cbx_warden_open(nullptr, &warden, &error) < 0)
                throw Error(error);
        return Warden(warden);
}

Policy parse(std::string_view text)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy = nullptr;

        if (cbx_policy_parse(text.data(), text.size(), &policy, &error) < 0)
                throw Error(error);
        return Policy(policy);
}

struct Result {
        std::string reason, text, output;
        int code;
};

Result run(const Warden &warden, const Policy &policy, std::vector<const char *> argv,
           std::string_view input = {})
{
        cbx_report report = CBX_REPORT_INIT;
        std::unique_ptr<cbx_report, Freed<cbx_report_free>> freed(&report);
        cbx_error error = CBX_ERROR_INIT;
        cbx_spec spec = CBX_SPEC_INIT;

        argv.push_back(nullptr);
        spec.argv = argv.data();
        spec.input = input.data();
        spec.input_length = input.size();
        if (cbx_run(warden.get(), policy.get(), &spec, &report, &error) < 0)
                throw Error(error);
        return { cbx_reason_name(report.reason),
                 report.text,
                 { report.output.data, report.output.length },
                 report.code };
}

} // namespace box

int main()
try {
        const auto warden = box::open();
        const auto policy = box::parse(R"({"limits": {"wall": 5, "memory": "64M"}})");
        const auto result = box::run(warden, policy, { "tr", "a-z", "A-Z" }, "a box for c++\n");

        std::printf("%s%s, code %d\n", result.output.c_str(), result.reason.c_str(), result.code);
        return 0;
} catch (const box::Error &error) {
        std::fprintf(stderr, "caller: %s\n", error.what());
        return 1;
}
