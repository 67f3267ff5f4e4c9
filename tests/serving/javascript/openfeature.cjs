// The published OFREP providers for servers and for the web: node openfeature.cjs ADDRESS KEY FLAG. Prints what they say.
const { OpenFeature } = require("@openfeature/server-sdk");
const { OFREPProvider } = require("@openfeature/ofrep-provider");
const { OpenFeature: WebFeature } = require("@openfeature/web-sdk");
const { OFREPWebProvider } = require("@openfeature/ofrep-web-provider");

const [address, key, flag] = process.argv.slice(2);
const told = (details) => ({ value: details.value, variant: details.variant, reason: details.reason, metadata: details.flagMetadata, error: details.errorCode });

async function onServer(said) {
  const headers = [["Authorization", `Bearer ${key}`]];
  await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: address, headers }));
  const client = OpenFeature.getClient();
  const context = { targetingKey: "user-7", device: "phone", visits: 3 };
  said.first = told(await client.getStringDetails(flag, "none", context));
  said.again = told(await client.getStringDetails(flag, "none", { ...context, o2pl: { eventId: "mine" } }));
  said.retried = told(await client.getStringDetails(flag, "none", { ...context, o2pl: { eventId: "mine" } }));
  said.unknown = told(await client.getStringDetails("nothing", "none", context));
  said.type = told(await client.getBooleanDetails(flag, true, context));
  said.invalid = told(await client.getStringDetails(flag, "none", { ...context, o2pl: { eventIdentity: "mine" } }));
  await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: address, headers: [["X-API-Key", "wrong"]] }));
  said.locked = told(await client.getStringDetails(flag, "none", context));
  await OpenFeature.close();
}

async function onTheWeb(said) {
  const statuses = [];
  const fetchImplementation = async (request) => {
    const answer = await fetch(request);
    statuses.push(answer.status);
    return answer;
  };
  const provider = new OFREPWebProvider({
    baseUrl: address, headers: [["X-API-Key", key]], fetchImplementation, pollInterval: 50, cacheMode: "disabled",
  });
  await WebFeature.setContext({ targetingKey: "user-8" });
  await WebFeature.setProviderAndWait(provider);
  const client = WebFeature.getClient();
  said.web = told(client.getStringDetails(flag, "none"));
  while (statuses.length < 3) await new Promise((done) => setTimeout(done, 20)); // it polls
  said.polled = told(client.getStringDetails(flag, "none"));
  said.statuses = statuses.slice(0, 3);
  await WebFeature.close();
}

async function main() {
  const said = {};
  await onServer(said);
  await onTheWeb(said);
  console.log(JSON.stringify(said));
  process.exit(0); // a poll may be pending
}

main();
