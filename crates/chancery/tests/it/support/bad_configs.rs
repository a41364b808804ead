//! Config files that nobody can mean, each wrong in several ways.

/// A file, and how each of its faults begins, in the order of the text.
pub(crate) struct Bad {
    pub(crate) text: &'static str,
    pub(crate) faults: &'static [&'static str],
}

pub(crate) const BAD: &[Bad] = &[
    Bad {
        text: "lissten = '127.0.0.1:1'\ndata = 7\n",
        faults: &["1:1: unknown key `lissten`; did you mean `listen`?", "2:8: data: expected text in quotes, got 7"],
    },
    Bad {
        text: "listen = 'localhost'\npublic_url = 'h:1'\ndedupe = 'on'\n",
        faults: &[
            "1:10: listen: expected an IP address and a port",
            "2:14: public_url: must begin with http",
            "3:10: dedupe: unknown value `on`",
        ],
    },
    Bad {
        text: "[limits]\njson_dept = 1\nbody_bytes = -1\npage_size = 'big'\n",
        faults: &[
            "2:1: unknown key `limits.json_dept`; did you mean `json_depth`?",
            "3:14: limits.body_bytes: expected a whole number ≥ 0, got -1",
            "4:13: limits.page_size: expected a whole number, got \"big\"",
        ],
    },
    Bad {
        text: "[limts]\nbody_bytes = 1\n[stor]\nsynchronous = 'full'\n",
        faults: &["1:2: unknown key `limts`; did you mean `limits`?", "3:2: unknown key `stor`; did you mean `store`?"],
    },
    Bad {
        text: "listen = \n[limits\nbody_bytes = 1\n[retention]\nmax_tusks = 1\n",
        faults: &["1:", "2:", "5:1: unknown key `retention.max_tusks`; did you mean `max_tasks`?"],
    },
    Bad {
        text: "[agents.a]\nrun = 'ehco'\n[agents.b]\nrun = 'echo'\nurl = 'http://h'\n[agents.'C D']\nrun = 'echo'\n",
        faults: &[
            "2:7: agents.a.run: unknown value `ehco`",
            "3:9: agents.b: has both `run` and `url`",
            "6:9: agents.C D: an agent's name is",
        ],
    },
    Bad {
        text: "[agents.a]\nurl = 'http://h:1'\n[agents.b]\nurl = ['http://h:1', 'ftp://h']\n",
        faults: &[
            "4:7: agents.b.url: http://h:1 is where a is already",
            "4:7: agents.b.url: \"ftp://h\" is no http, https, swp or swps URL",
        ],
    },
    Bad {
        text: "[agents.a]\nrun = 'echo'\npin = true\n[agents.b]\nurl = 'http://h'\nverify = 'allways'\n",
        faults: &["1:9: agents.a: is here", "6:10: agents.b.verify: unknown value `allways`"],
    },
    Bad {
        text: "[agents.echo]\nrun = 'echo'\n[callers.a]\nkey_env = 'K'\nmay_call = ['ecko']\n[callers.b]\nkey_env = 'L'\nagent = 'nobody'\n",
        faults: &[
            "5:12: callers.a.may_call: there is no agent ecko here; did you mean `echo`?",
            "8:9: callers.b.agent: there is no agent nobody here",
        ],
    },
    Bad {
        text: "[callers.a]\ntenant = 't'\n[callers.b]\nkey_emv = 'K'\n",
        faults: &[
            "1:10: callers.a: needs a credential",
            "3:10: callers.b: needs a credential",
            "4:1: unknown key `callers.b.key_emv`; did you mean `key_env`?",
        ],
    },
    Bad {
        text: "[callers.a]\nkey_hash = 'md5:00'\n[callers.b]\nagent_id = 'xyz'\n",
        faults: &["2:12: callers.a.key_hash: ", "4:12: callers.b.agent_id: "],
    },
    Bad {
        text: "[callers.a]\ntoken = { issuer = 'acmee', subject = 's' }\ncertificate = 'dns:a.example'\n[issuers.acme]\nissuer = 'https://i'\naudience = 'me'\n",
        faults: &[
            "2:9: callers.a.token: there is no [issuers.acmee]; did you mean `acme`?",
            "3:15: callers.a.certificate: the node checks no client certificates without tls.client_ca_file",
        ],
    },
    Bad {
        text: "[issuers.a]\naudience = 'x'\n[issuers.b]\nissuer = 'https://i'\naudience = 'x'\nalgorithms = ['HS256']\n",
        faults: &["1:10: issuers.a: needs `issuer`", "6:15: issuers.b.algorithms: unknown value `HS256`"],
    },
    Bad {
        text: "[routing]\ndefault_selector = 'lowest_latancy'\nfallback = 'locl'\nlatency_budget_ms = 0\n",
        faults: &[
            "2:20: routing.default_selector: unknown value `lowest_latancy`",
            "3:12: routing.fallback: unknown value `locl`",
            "4:21: routing.latency_budget_ms: must be more than 0",
        ],
    },
    Bad {
        text: "[health]\nfailures = 0\nfailure_percent = 101\ncooldown_ms = 9\nmax_cooldown_ms = 8\n",
        faults: &[
            "1:2: health: max_cooldown_ms is 8, less than cooldown_ms, which is 9",
            "2:12: health.failures: must be more than 0",
            "3:19: health.failure_percent: must be from 1 to 100",
        ],
    },
    Bad {
        text: "[tls]\ncert_file = 'a.pem'\nclient_certificates = 'often'\n",
        faults: &["1:2: tls: needs cert_file and key_file", "3:23: tls.client_certificates: unknown value `often`"],
    },
    Bad {
        text: "[keys.push]\nfile = 'a'\nenv = 'B'\n[keys.receipts]\n[keys.other]\nenv = 'C'\n",
        faults: &["1:7: keys.push: ", "4:7: keys.receipts: needs `file` or `env`", "5:7: unknown key `keys.other`"],
    },
    Bad {
        text: "[outbound]\nallow_nets = ['10.0.0.0/33']\nallow_http = 'yes'\nconnect_mss = 1\n",
        faults: &[
            "2:15: outbound.allow_nets: ",
            "3:14: outbound.allow_http: expected ",
            "4:1: unknown key `outbound.connect_mss`; did you mean `connect_ms`?",
        ],
    },
    Bad {
        text: "[card]\nheaderless = 'both'\n[store]\nsynchronous = 'of'\n[identity]\nallow = ['nobody']\n",
        faults: &[
            "2:14: card.headerless: unknown value `both`",
            "4:15: store.synchronous: unknown value `of`",
            "6:9: identity.allow: ",
        ],
    },
    Bad {
        text: "limits = 3\nagents = []\ncard = 'x'\n",
        faults: &[
            "1:1: limits: must be a section, not an integer",
            "2:1: agents: must be a section, not an array",
            "3:1: card: must be a section, not a string",
        ],
    },
    Bad {
        text: "dedupe = 'off'\ndedupe = 'off'\n[peers]\npoll_ms = 9000\nmax_reconnect_ms = 1\nretries = 'two'\n",
        faults: &[
            "2:1: duplicate key",
            "3:2: peers.reconnect_ms: is 200, more than max_reconnect_ms, which is 1",
            "4:11: peers.poll_ms: is 9000, more than max_poll_ms, which is 1000",
            "6:11: peers.retries: expected a whole number from 0 to 4294967295, got \"two\"",
        ],
    },
];
